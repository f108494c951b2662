// SPDX-License-Identifier: BSD-3-Clause
// src/graph/spin_lock.h: a lock for critical sections of a few dozen instructions.
#pragma once

#include <atomic>
#include <thread>

#include "base/pause.h"

namespace quadriga {

/// Test-and-test-and-set; yields to the scheduler when its holder seems to be off the processor.
class SpinLock {
 public:
  void lock() noexcept {
    for (int spins = 0; held_.exchange(true, std::memory_order_acquire); ++spins)
      for (; held_.load(std::memory_order_relaxed); ++spins)
        if (spins < 200)
          pause_briefly();
        else
          std::this_thread::yield();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace quadriga
