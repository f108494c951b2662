// SPDX-License-Identifier: BSD-3-Clause
// src/engine/waiters.h: the threads that wait for the driver, and what they write to the log for
// it: the log may take locks of the user's, such as Python's, which the driver must not wait for.
//
// Invariants
//   1. mutex_ guards `notices_`; sleepers wait on changed_ with it, and pause briefly, so that a
//      signal which comes before they sleep costs a pause and no more.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "device/backend.h"

namespace quadriga {

class Waiters {
 public:
  explicit Waiters(const Backend& clock) : clock_(clock) {}

  /// Until the condition holds, which is looked at after signals. False at the deadline.
  bool sleep_until(const std::function<bool()>& condition, Nanoseconds deadline);
  /// What they wait for may hold now.
  void signal();
  /// For the log.
  void notice(std::string text);
  /// Writes what was noticed.
  void tell_notices();

 private:
  const Backend& clock_;
  std::atomic<int> count_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> notices_;
};

}  // namespace quadriga
