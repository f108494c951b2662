// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/read_order.h: in which order chunks of known sizes are read. Pure.
//
// Chunks are read in the order in which the dispatch would take them if all of them were there, so
// that those few that are there are the ones that it wants next. A number a chunk is kept.
//
// Invariants
//   1. Each chunk below the end is given once.
//   2. Of those that are left, `lowest_` and `highest_` bound the ranks, `first_` the numbers.
#pragma once

#include <quadriga/pipeline.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace quadriga {

class ReadOrder {
 public:
  /// `devices`: by the adaptive order each of them begins with small chunks (dispatch.h).
  /// Errors: invalid_argument naming a size that isn't a finite number, at least 0.
  ReadOrder(std::span<const double> sizes, Order order, std::size_t devices);

  /// The number of the chunk to be read next; nothing: all were given.
  std::optional<std::uint64_t> next();
  /// Chunks from this number on aren't given any more.
  void end_at(std::uint64_t number);
  void set_order(Order order) noexcept { order_ = order; }
  std::size_t left() const noexcept { return left_; }

 private:
  std::uint64_t take(std::uint64_t number);
  std::uint64_t take_rank(std::size_t rank) { return take(by_size_[rank]); }
  std::size_t lowest();
  std::size_t highest();
  std::uint64_t small_one();

  std::vector<std::uint64_t> by_size_;  ///< The smallest first; of equal ones the last first.
  std::vector<bool> taken_;             ///< By number, up to the end.
  Order order_;
  std::size_t devices_;
  std::size_t left_;
  std::size_t small_left_;  ///< That devices begin with.
  std::size_t lowest_ = 0;
  std::size_t highest_;  ///< One more.
  std::uint64_t first_ = 0;
};

}  // namespace quadriga
