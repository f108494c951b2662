// SPDX-License-Identifier: BSD-3-Clause
// src/graph/group.h: tasks that end, fail and are cancelled together, apart from all others.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

namespace quadriga {

/// The tasks of one call. Whoever submits them, one thread, keeps it until wait() or cancel() of
/// the engine has returned: then nothing refers to it any more.
struct TaskGroup {
  std::uint64_t submitted = 0;          ///< The submitter's.
  std::atomic<std::uint64_t> ended{0};  ///< The last that its tasks touch.
  std::atomic<bool> cancelled{false};   ///< Those that have not started end cancelled.
  bool stopped = false;                 ///< The scheduler's: it has seen `cancelled`.
  std::uint64_t id = next_id();         ///< From 1: addresses are used again.
  // Guarded by Failures.
  std::exception_ptr failure = {};      ///< The first.
  std::exception_ptr consequence = {};  ///< Of the first that didn't run, or in vain.
  static std::uint64_t next_id() noexcept {
    static std::atomic<std::uint64_t> made{0};
    return made.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  bool all_ended() const noexcept { return ended.load(std::memory_order_acquire) == submitted; }
};

}  // namespace quadriga
