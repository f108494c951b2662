// SPDX-License-Identifier: BSD-3-Clause
// src/base/unwinder.h: whether C++ exceptions can be thrown in this process at all.
#pragma once

#include <string>

namespace quadriga {

/// The library whose functions libgcc's unwinder was bound to in place of its own; empty if none.
/// With one, as LLVM's libunwind that was loaded first, the first exception ends the process: it
/// reads what libgcc wrote in another layout. Any thread.
std::string foreign_unwinder();

}  // namespace quadriga
