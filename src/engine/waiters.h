// SPDX-License-Identifier: BSD-3-Clause
// src/engine/waiters.h: the threads that wait for an executor, and what they write to the log for
// it: the log may take locks of the user's, such as Python's, which no executor must wait for.
//
// Invariants
//   1. mutex_ guards `signals_` and `notices_`; it isn't held while a condition is looked at.
//   2. Who waits has read `signals_` before it looked at its condition, so that no signal is
//      missed; conditions that no signal tells of are looked at after pauses.
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
