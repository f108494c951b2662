// SPDX-License-Identifier: BSD-3-Clause
// src/device/ring.h: a first-in-first-out queue that allocates only when it grows.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace quadriga {

/// A queue on a buffer of a power of two. T is default constructible; popped places are reset.
template <class T>
class Ring {
 public:
  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  T& front() noexcept { return places_[first_]; }
  const T& front() const noexcept { return places_[first_]; }
  /// The element that pop() would return after `position` others.
  T& at(std::size_t position) noexcept {
    return places_[(first_ + position) & (places_.size() - 1)];
  }
  const T& at(std::size_t position) const noexcept {
    return places_[(first_ + position) & (places_.size() - 1)];
  }

  void push(T value) {
    if (size_ == places_.size()) grow();
    places_[(first_ + size_) & (places_.size() - 1)] = std::move(value);
    ++size_;
  }

  T pop() {
    T value = std::exchange(places_[first_], T{});
    first_ = (first_ + 1) & (places_.size() - 1);
    --size_;
    return value;
  }

 private:
  void grow() {
    std::vector<T> larger(places_.empty() ? 16 : 2 * places_.size());
    for (std::size_t i = 0; i < size_; ++i) {
      larger[i] = std::move(places_[(first_ + i) & (places_.size() - 1)]);
    }
    places_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> places_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace quadriga
