// SPDX-License-Identifier: BSD-3-Clause
// src/base/affinity.h: binds threads, and the memory that they touch first, to processors.
#pragma once

#include <functional>
#include <vector>

namespace quadriga {

/// Lets the calling thread run on these processors only, as far as it may run on them now. None of
/// them: it stays as it is. Returns whether it was bound.
bool bind_thread(const std::vector<int>& processors) noexcept;

/// Calls a function in a thread on these processors and waits for its end: pages that it touches
/// first are near to them. Rethrows what it throws.
void run_near(const std::vector<int>& processors, const std::function<void()>& call);

}  // namespace quadriga
