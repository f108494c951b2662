// SPDX-License-Identifier: BSD-3-Clause
// src/engine/waiters.h: the threads that wait for an executor, and the messages that they log for
// it: logging may take the user's locks, such as Python's, for which no executor must wait.
//
// Invariants
//   1. mutex_ guards `signals_`, `quick_`, `others_` and `notices_`. While it is held, quick
//      conditions alone are checked: they take no lock.
//   2. A waiter looks for some microseconds before it sleeps; then nobody signals for its sake. It
//      reads `signals_` before it checks its condition, so no signal is missed; conditions without
//      a signal are polled.
//   3. A signal wakes nobody if all that are waited for are quick conditions that don't hold: to
//      wake a thread costs as much as to queue a kernel. A condition is in `quick_` until its
//      thread has stopped waiting.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "device/backend.h"

namespace quadriga {

/// Who may check a condition. Anybody: it is quick, takes no lock and doesn't throw.
enum class Checked { by_waiter, by_anybody };

class Waiters {
 public:
  using Clock = std::function<Nanoseconds()>;
  explicit Waiters(Clock now) : now_(std::move(now)) {}

  using Condition = std::function<bool()>;
  /// Until the condition holds, which is looked at after signals. False at the deadline. Where it
  /// can't hold unless `quick` does, which anybody may check, this is awake only then.
  bool sleep_until(const Condition& condition, Nanoseconds deadline,
                   const Condition* quick = nullptr);
  /// What they wait for may hold now. Costs next to nothing where nobody waits.
  void signal();
  /// All look at their conditions.
  void wake_all();
  /// For the log.
  void notice(std::string text);
  /// Writes what was noticed.
  void tell_notices();

 private:
  class Waiting;

  const Clock now_;
  std::atomic<int> count_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t signals_ = 0;
  std::vector<const Condition*> quick_;
  int others_ = 0;  ///< Those that wait for other conditions.
  std::vector<std::string> notices_;
};

}  // namespace quadriga
