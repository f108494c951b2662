// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/event_pool.h: CUDA events of a device, reused once nobody holds them.
//
// Invariants
//   1. An event is unused or held: by the operation that recorded it, until that is retired, and by
//      a caller that is about to make a stream wait for it. So nobody waits for a later record than
//      the one looked up. Queued waits keep the record that they saw.
//   2. `mutex_` guards the members of a pool. It isn't held during a call of the runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace quadriga::cuda {

class EventPool {
 public:
  struct Node {
    cudaEvent_t native = nullptr;
    EventPool* pool = nullptr;
    std::atomic<int> holders{0};
  };

  explicit EventPool(int ordinal) : ordinal_(ordinal) {}
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  /// An unused event, or a new one; null and an error where none can be had. Any thread.
  Node* take(cudaError_t& error);
  void give_back(Node* node);
  /// At the end, while nobody holds any.
  void destroy_all() noexcept;

 private:
  const int ordinal_;
  std::mutex mutex_;
  std::deque<Node> nodes_;  // Never moved.
  std::vector<Node*> unused_;
};

/// Holds an event of a pool, or none.
class HeldEvent {
 public:
  HeldEvent() = default;
  explicit HeldEvent(EventPool::Node* node) noexcept : node_(node) {
    if (node_) node_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  HeldEvent(const HeldEvent& other) noexcept : HeldEvent(other.node_) {}
  HeldEvent(HeldEvent&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  HeldEvent& operator=(HeldEvent other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~HeldEvent() {
    if (node_ && node_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1)
      node_->pool->give_back(node_);
  }
  explicit operator bool() const noexcept { return node_ != nullptr; }
  cudaEvent_t native() const noexcept { return node_->native; }

 private:
  EventPool::Node* node_ = nullptr;
};

}  // namespace quadriga::cuda
