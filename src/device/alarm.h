// SPDX-License-Identifier: BSD-3-Clause
// src/device/alarm.h: wakes a sleeping thread, or keeps it from its next sleep.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "device/backend.h"

namespace quadriga {

/// A clock that counts from its making, and one thread that sleeps by it.
class Alarm {
 public:
  Nanoseconds now() const noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
  }
  /// Any thread.
  void ring() noexcept {
    {
      const std::lock_guard lock(mutex_);
      rung_ = true;
    }
    rings_.notify_one();
  }
  /// Until a moment by now(), or the next ring() since the last sleep.
  void sleep_until(Nanoseconds moment) {
    std::unique_lock lock(mutex_);
    const auto rung = [this] { return rung_; };
    if (moment >= never / 2)  // Later, sums of times would overflow.
      rings_.wait(lock, rung);
    else
      rings_.wait_until(lock, start_ + std::chrono::nanoseconds(moment), rung);
    rung_ = false;
  }

 private:
  using Clock = std::chrono::steady_clock;

  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable rings_;
  bool rung_ = false;  // Guarded by mutex_.
};

}  // namespace quadriga
