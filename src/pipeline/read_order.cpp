// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/read_order.cpp: ranks of sizes, from both ends.
#include "pipeline/read_order.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pipeline/dispatch.h"

namespace quadriga {

ReadOrder::ReadOrder(std::span<const double> sizes, Order order, std::size_t devices)
    : by_size_(sizes.size()),
      taken_(sizes.size(), false),
      order_(order),
      devices_(devices),
      left_(sizes.size()),
      small_left_(devices * Dispatch::small_first),
      highest_(sizes.size()) {
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (!std::isfinite(sizes[i]) || sizes[i] < 0)
      fail(Errc::invalid_argument,
           fmt::format("the size of chunk {} is {}; expected a number, at least 0", i, sizes[i]));
  std::iota(by_size_.rbegin(), by_size_.rend(), std::uint64_t{0});
  std::ranges::stable_sort(by_size_, {}, [&](std::uint64_t number) { return sizes[number]; });
}

std::uint64_t ReadOrder::take(std::uint64_t number) {
  taken_[number] = true;
  --left_;
  return number;
}

std::size_t ReadOrder::lowest() {
  while (taken_[by_size_[lowest_]]) ++lowest_;
  return lowest_;
}

std::size_t ReadOrder::highest() {
  while (taken_[by_size_[highest_ - 1]]) --highest_;
  return highest_ - 1;
}

/// One of those that devices begin with, behind the ones that are kept for the end.
std::uint64_t ReadOrder::small_one() {
  --small_left_;
  std::size_t rank = lowest();
  std::size_t kept = left_ > devices_ * (Dispatch::small_first + 1) ? devices_ : 0;
  while (kept > 0 || taken_[by_size_[rank]]) {
    if (!taken_[by_size_[rank]]) --kept;
    ++rank;
  }
  return take_rank(rank);
}

std::optional<std::uint64_t> ReadOrder::next() {
  if (left_ == 0) return std::nullopt;
  switch (order_) {
    case Order::first_come:
      while (taken_[first_]) ++first_;
      return take(first_);
    case Order::smallest:
      return take_rank(lowest());
    case Order::adaptive:
      if (small_left_ > 0) return small_one();
      break;
    case Order::largest:
      break;
  }
  return take_rank(highest());
}

void ReadOrder::end_at(std::uint64_t number) {
  if (number >= taken_.size()) return;
  for (std::uint64_t each = taken_.size(); each-- > number;)
    if (!taken_[each]) take(each);
  taken_.resize(number);
  std::erase_if(by_size_, [&](std::uint64_t each) { return each >= number; });
  lowest_ = 0;
  highest_ = by_size_.size();
}

}  // namespace quadriga
