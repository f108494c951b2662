// SPDX-License-Identifier: BSD-3-Clause
// src/engine/ready_queue.h: the ready tasks of one worker; thieves take the oldest.
//
// Invariants
//   1. `lock_` guards ring and heap; `size_` and `top_` are written under it and read by anyone
//      as hints.
//   2. Tasks of priority 0 or less are in the ring, in order of arrival; the others in the heap.
#pragma once

#include <algorithm>
#include <climits>
#include <mutex>
#include <vector>

#include "graph/spin_lock.h"
#include "graph/task.h"

namespace quadriga {

class ReadyQueue {
 public:
  ReadyQueue() : ring_(1024) {}

  void push(Task* task) {
    std::lock_guard lock(lock_);
    if (task->priority > 0) {
      heap_.push_back({task->priority, task->id, task});
      std::push_heap(heap_.begin(), heap_.end());
      top_.store(heap_.front().priority, std::memory_order_relaxed);
    } else {
      if (tail_ - head_ == ring_.size()) grow();
      ring_[tail_++ & (ring_.size() - 1)] = task;
    }
    // A full barrier on every platform we run on: whoever parks looks at size_ after announcing it.
    size_.fetch_add(1, std::memory_order_seq_cst);
  }

  /// The task of highest priority, else the oldest; up to `most` of priority 0 at once.
  std::size_t pop(Task** out, std::size_t most) {
    if (size() == 0) return 0;
    std::lock_guard lock(lock_);
    std::size_t count = 0;
    if (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      out[count++] = heap_.back().task;
      heap_.pop_back();
      top_.store(heap_.empty() ? 0 : heap_.front().priority, std::memory_order_relaxed);
    } else {
      while (count < most && head_ != tail_) out[count++] = ring_[head_++ & (ring_.size() - 1)];
    }
    size_.store(static_cast<std::uint32_t>(heap_.size() + (tail_ - head_)),
                std::memory_order_relaxed);
    return count;
  }

  std::uint32_t size() const noexcept { return size_.load(std::memory_order_seq_cst); }
  /// Highest priority in the queue as a hint; 0 if none is above that.
  std::int32_t top() const noexcept { return top_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::int32_t priority;
    std::uint64_t id;
    Task* task;
    bool operator<(const Entry& other) const noexcept {
      return priority != other.priority ? priority < other.priority : id > other.id;
    }
  };

  void grow() {
    std::vector<Task*> larger(ring_.size() * 2);
    for (std::size_t i = head_; i != tail_; ++i)
      larger[i & (larger.size() - 1)] = ring_[i & (ring_.size() - 1)];
    ring_ = std::move(larger);
  }

  SpinLock lock_;
  std::atomic<std::uint32_t> size_{0};
  std::atomic<std::int32_t> top_{0};
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
  std::vector<Task*> ring_;  ///< Capacity is a power of two.
  std::vector<Entry> heap_;
};

}  // namespace quadriga
