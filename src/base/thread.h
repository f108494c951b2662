// SPDX-License-Identifier: BSD-3-Clause
// src/base/thread.h: threads that can't be started are an error that says why.
#pragma once

#include <functional>
#include <thread>

namespace quadriga {

/// Starts a thread.
///
/// Errors:  unavailable if the system refuses one more, naming its reason and the usual limits.
std::thread start_thread(std::function<void()> work);

}  // namespace quadriga
