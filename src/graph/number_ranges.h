// SPDX-License-Identifier: BSD-3-Clause
// src/graph/number_ranges.h: a set of numbers, small where they come in rows.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace quadriga {

class NumberRanges {
 public:
  void add(std::uint64_t number) {
    const auto next = ends_.upper_bound(number);
    const auto before = next == ends_.begin() ? ends_.end() : std::prev(next);
    if (before != ends_.end() && number < before->second) return;
    const bool joins_next = next != ends_.end() && next->first == number + 1;
    const std::uint64_t end = joins_next ? next->second : number + 1;
    if (joins_next) ends_.erase(next);
    if (before != ends_.end() && before->second == number)
      before->second = end;
    else
      ends_.emplace(number, end);
  }
  bool contains(std::uint64_t number) const {
    const auto next = ends_.upper_bound(number);
    return next != ends_.begin() && number < std::prev(next)->second;
  }
  /// How many rows of numbers it holds.
  std::size_t ranges() const noexcept { return ends_.size(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  ///< Behind the last of a row, by its first.
};

}  // namespace quadriga
