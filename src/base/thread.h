// SPDX-License-Identifier: BSD-3-Clause
// src/base/thread.h: starts threads; a failure to start one is an error with the reason.
#pragma once

#include <functional>
#include <system_error>
#include <thread>

namespace quadriga {

/// Starts a thread. Debuggers and profilers show its name, which has at most 15 characters.
///
/// Errors:  unavailable if the system refuses one more, naming its reason and the usual limits.
std::thread start_thread(const char* name, std::function<void()> work);

/// The error of start_thread(), for who starts a thread otherwise.
[[noreturn]] void refuse_thread(const std::system_error& error);

/// Whether start_thread() started the calling thread: what it leaves set for itself concerns no
/// program, whose code runs there only where the library calls it and has set all that it needs.
bool is_own_thread() noexcept;

}  // namespace quadriga
