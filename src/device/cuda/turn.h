// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/turn.h: the exclusive right to queue on a stream, taken in turn.
#pragma once

#include <atomic>
#include <thread>

namespace quadriga::cuda {

/// A lock that one thread may take and another one give back. Who waits for it waits for a call of
/// the runtime, and does so busily.
class Turn {
 public:
  bool try_take() noexcept { return !taken_.exchange(true, std::memory_order_acquire); }
  void take() noexcept {
    while (!try_take()) std::this_thread::yield();
  }
  void give_back() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace quadriga::cuda
