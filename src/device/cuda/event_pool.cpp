// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/event_pool.cpp: events are made when all are in use, and destroyed at the end.
#include "device/cuda/event_pool.h"

namespace quadriga::cuda {

EventPool::Node* EventPool::take(cudaError_t& error) {
  error = cudaSuccess;
  {
    const std::lock_guard lock(mutex_);
    if (!unused_.empty()) {
      Node* const node = unused_.back();
      unused_.pop_back();
      return node;
    }
  }
  int before = ordinal_;
  cudaEvent_t event = nullptr;
  cudaGetDevice(&before);  // It may be one that is lost.
  error = cudaSetDevice(ordinal_);
  if (error == cudaSuccess) error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaSetDevice(before);
  if (error != cudaSuccess) return nullptr;
  const std::lock_guard lock(mutex_);
  Node& node = nodes_.emplace_back();
  node.native = event;
  node.pool = this;
  return &node;
}

void EventPool::give_back(Node* node) {
  const std::lock_guard lock(mutex_);
  unused_.push_back(node);
}

void EventPool::destroy_all() noexcept {
  for (const Node& node : nodes_) cudaEventDestroy(node.native);
}

}  // namespace quadriga::cuda
