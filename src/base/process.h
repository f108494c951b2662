// SPDX-License-Identifier: BSD-3-Clause
// src/base/process.h: detects that an object is used in a child process after fork().
#pragma once

#include <atomic>
#include <string_view>

namespace quadriga {

/// The id of this process; 0 until it was asked for.
inline std::atomic<int> known_process_id{0};
int first_process_id() noexcept;
[[noreturn]] void refuse_forked(int owner, std::string_view object);

/// The id of this process, without a system call; right again in a child after fork().
inline int process_id() noexcept {
  const int id = known_process_id.load(std::memory_order_relaxed);
  return id != 0 ? id : first_process_id();
}

/// Throws unless `owner`, the process_id() that an object noted when it was made, is this process.
///
/// Threads, streams and device contexts don't survive fork(), so using them would hang.
/// Errors:  unavailable, naming the object, both processes and what to do.
/// Cost:    one atomic load.
inline void check_not_forked(int owner, std::string_view object) {
  if (owner != process_id()) [[unlikely]]
    refuse_forked(owner, object);
}

}  // namespace quadriga
