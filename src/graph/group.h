// SPDX-License-Identifier: BSD-3-Clause
// src/graph/group.h: tasks that end, fail and are cancelled together, apart from all others.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

namespace quadriga {

/// The tasks of one call, submitted by one thread. Nothing refers to it any more once its tasks
/// have ended, as wait() and cancel() of the engine and `on_end` tell: whoever keeps it may drop it
/// then, in `on_end` too.
struct TaskGroup {
  std::atomic<bool> cancelled{false};  ///< Tasks that have not started end cancelled.
  bool stopped = false;                ///< The scheduler's: it has seen `cancelled`.
  std::uint64_t id = next_id();        ///< From 1: addresses are used again.
  // Guarded by Failures.
  std::exception_ptr failure = {};      ///< The first.
  std::exception_ptr consequence = {};  ///< Of the first that was cancelled or read invalid data.

  /// Called once, when close() was called and the last task has ended, by whichever thread comes
  /// last: a thread of the engine's, which others wait for. It neither waits nor submits; waking
  /// somebody who does is its use.
  std::function<void()> on_end = {};

  /// The submitter's.
  void task_submitted() noexcept { open_.fetch_add(1, std::memory_order_relaxed); }
  /// The last that a task does with it.
  void task_ended() { leave(); }
  /// No task will be submitted to it any more; the submitter calls it, once.
  void close() { leave(); }
  /// Of what was submitted so far, for the submitter, before close().
  bool all_ended() const noexcept { return open_.load(std::memory_order_acquire) == 1; }

  static std::uint64_t next_id() noexcept {
    static std::atomic<std::uint64_t> made{0};
    return made.fetch_add(1, std::memory_order_relaxed) + 1;
  }

 private:
  void leave() {
    if (open_.fetch_sub(1, std::memory_order_acq_rel) != 1 || !on_end) return;
    const std::function<void()> told = std::move(on_end);
    told();
  }

  std::atomic<std::uint64_t> open_{1};  ///< Tasks that have not ended, and one until close().
};

}  // namespace quadriga
