// SPDX-License-Identifier: BSD-3-Clause
// src/engine/waiters.h: the threads that wait for an executor, and the messages that they log for
// it: logging may take the user's locks, such as Python's, for which no executor must wait.
//
// Invariants
//   1. mutex_ guards `signals_` and `notices_`; it isn't held while a condition is checked.
//   2. A waiter looks for some microseconds before it sleeps; then nobody signals for its sake. It
//      reads `signals_` before it checks its condition, so no signal is missed; conditions without
//      a signal are polled.
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

class Waiters {
 public:
  using Clock = std::function<Nanoseconds()>;
  explicit Waiters(Clock now) : now_(std::move(now)) {}

  /// Until the condition holds, which is looked at after signals. False at the deadline.
  bool sleep_until(const std::function<bool()>& condition, Nanoseconds deadline);
  /// What they wait for may hold now. Costs next to nothing where nobody waits.
  void signal();
  /// For the log.
  void notice(std::string text);
  /// Writes what was noticed.
  void tell_notices();

 private:
  const Clock now_;
  std::atomic<int> count_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t signals_ = 0;
  std::vector<std::string> notices_;
};

}  // namespace quadriga
