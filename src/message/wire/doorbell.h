// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/doorbell.h: wakes a rank's sleeping calls, or its service thread.
//
// Invariants
//   1. Who sleeps arms the bell first and looks for work once more afterwards; who makes work asks
//      for the armed bell afterwards. Both are sequentially consistent (slot_ring.h, invariant 4).
//   2. While a rank polls, its bell isn't armed: a message costs its sender no system call.
//   3. Who finds the bell armed disarms it, so one of many senders pays for waking.
#pragma once

#include <chrono>
#include <cstdint>

#include "message/wire/segment.h"

namespace quadriga::message {

/// One rank's bell, as it or another rank sees it.
class Doorbell {
 public:
  static constexpr std::uint32_t calls = 1;    ///< Threads inside of calls sleep on the word.
  static constexpr std::uint32_t service = 2;  ///< The service thread sleeps in poll().

  /// `event` is the rank's eventfd; it isn't owned. -1: it has no service thread.
  Doorbell(RankWords& words, int event) noexcept : words_(&words), event_(event) {}

  /// To be called after work was made for the rank.
  void ring() const noexcept {
    if (words_->armed.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      wake();
  }
  /// Wakes the service thread whether it is armed or not.
  void wake_service() const noexcept;

  void arm(std::uint32_t whom) const noexcept {
    words_->armed.fetch_or(whom, std::memory_order_seq_cst);
  }
  void disarm(std::uint32_t whom) const noexcept {
    words_->armed.fetch_and(~whom, std::memory_order_seq_cst);
  }
  bool armed(std::uint32_t whom) const noexcept {
    return (words_->armed.load(std::memory_order_relaxed) & whom) != 0;
  }
  /// To be read before arming, then given to sleep().
  std::uint32_t count() const noexcept { return words_->bell.load(std::memory_order_seq_cst); }
  /// Sleeps until the bell rings after `seen` was read, or some time has passed.
  void sleep(std::uint32_t seen, std::chrono::nanoseconds longest) const noexcept;

 private:
  void wake() const noexcept;
  RankWords* words_;
  int event_;
};

}  // namespace quadriga::message
