// SPDX-License-Identifier: BSD-3-Clause
// src/device/growing.h: a list that grows while other threads use its elements.
//
// Invariants
//   1. Elements never move. Block b has `first << b` places and is allocated with its first
//      element.
//   2. One thread at a time adds. An element is complete before `size_` counts it; no other thread
//      touches uncounted elements.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>

namespace quadriga {

/// T is default constructible. All but add() and the destructor: any thread.
template <class T>
class Growing {
 public:
  class Iterator {
   public:
    Iterator(const Growing* list, std::size_t at) : list_(list), at_(at) {}
    T& operator*() const { return (*list_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    const Growing* list_;
    std::size_t at_;
  };

  std::size_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  T& operator[](std::size_t at) const noexcept {
    const std::size_t block = block_of(at);
    return blocks_[block].load(std::memory_order_acquire)[at - begin_of(block)];
  }
  Iterator begin() const noexcept { return {this, 0}; }
  Iterator end() const noexcept { return {this, size()}; }

  /// Calls `make` with the new element; returns its index. Nothing is added if that throws.
  template <class Make>
  std::size_t add(Make&& make) {
    const std::size_t at = size();
    const std::size_t block = block_of(at);
    if (!kept_[block]) {
      kept_[block] = std::make_unique<T[]>(first << block);
      blocks_[block].store(kept_[block].get(), std::memory_order_release);
    }
    make((*this)[at]);
    size_.store(at + 1, std::memory_order_release);
    return at;
  }

 private:
  static constexpr std::size_t first = 16;
  static constexpr std::size_t most_blocks = 28;
  static std::size_t block_of(std::size_t at) noexcept {
    return static_cast<std::size_t>(std::bit_width(at / first + 1) - 1);
  }
  static std::size_t begin_of(std::size_t block) noexcept { return (first << block) - first; }

  std::array<std::unique_ptr<T[]>, most_blocks> kept_;  // The adding thread's.
  std::array<std::atomic<T*>, most_blocks> blocks_{};
  std::atomic<std::size_t> size_{0};
};

}  // namespace quadriga
