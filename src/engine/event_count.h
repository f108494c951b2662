// SPDX-License-Identifier: BSD-3-Clause
// src/engine/event_count.h: workers without work search for a while, then sleep until work arrives.
//
// Invariants
//   1. A thread that adds work checks for sleepers afterwards; a worker announces itself as a
//      sleeper, then checks for work once more, then sleeps. So no work waits while all sleep.
//   2. While a worker searches, nobody is woken: it finds the work.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/brief_search.h"

namespace quadriga {

class EventCount {
 public:
  /// Work was added, of which one sleeper, if there is any, should know.
  void added() noexcept {
    if (sleepers_.load(std::memory_order_seq_cst) > 0 &&
        searching_.load(std::memory_order_seq_cst) == 0)
      wake_one();
  }
  /// The same where a thief leaves work that is not new: whoever misses it isn't needed.
  void left_over() noexcept {
    if (sleepers_.load(std::memory_order_relaxed) > 0 &&
        searching_.load(std::memory_order_relaxed) == 0)
      wake_one();
  }
  /// Looks for work for some microseconds, awake. True if there is some.
  template <class Work, class Clock>
  bool search(Work&& is_there, Clock&& now);
  /// Sleeps until work is added, or stop().
  template <class Work>
  void sleep(Work&& is_there);
  /// Nobody sleeps any more.
  void stop() noexcept {
    stopping_.store(true, std::memory_order_seq_cst);
    wakeups_.fetch_add(1, std::memory_order_seq_cst);
    wakeups_.notify_all();
  }
  bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }
  int sleepers() const noexcept { return sleepers_.load(); }

 private:
  void wake_one() noexcept {
    wakeups_.fetch_add(1, std::memory_order_seq_cst);
    wakeups_.notify_one();
  }

  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<int> searching_{0};
  std::atomic<std::uint32_t> wakeups_{0};  ///< Sleepers wait for it to change.
  std::atomic<bool> stopping_{false};
};

template <class Work, class Clock>
bool EventCount::search(Work&& is_there, Clock&& now) {
  searching_.fetch_add(1, std::memory_order_seq_cst);
  const bool found = search_briefly(is_there, now);
  searching_.fetch_sub(1, std::memory_order_seq_cst);
  return found;
}

template <class Work>
void EventCount::sleep(Work&& is_there) {
  const std::uint32_t seen = wakeups_.load(std::memory_order_seq_cst);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  if (!is_there() && !stopping_.load(std::memory_order_seq_cst)) wakeups_.wait(seen);
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace quadriga
