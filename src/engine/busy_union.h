// SPDX-License-Identifier: BSD-3-Clause
// src/engine/busy_union.h: the length of a union of intervals that arrive nearly in order of their
// ends.
#pragma once

#include <quadriga/types.h>

#include <algorithm>
#include <vector>

namespace quadriga {

class BusyUnion {
 public:
  void add(Nanoseconds begin, Nanoseconds end) {
    begin = std::max(begin, folded_until_);
    if (end <= begin) return;
    // The place is near the end, mostly: a search from the middle would look at cold memory.
    constexpr int near = 4;
    auto first = open_.end();
    for (int i = 0; i < near && first != open_.begin() && (first - 1)->end >= begin; ++i) --first;
    if (first != open_.begin() && (first - 1)->end >= begin)
      first = std::lower_bound(open_.begin(), first, begin,
                               [](const Interval& i, Nanoseconds t) { return i.end < t; });
    auto last = first;
    for (; last != open_.end() && last->begin <= end; ++last) {
      begin = std::min(begin, last->begin);
      end = std::max(end, last->end);
      total_ -= last->end - last->begin;
    }
    total_ += end - begin;
    if (first == last) {
      open_.insert(first, {begin, end});
    } else {
      *first = {begin, end};
      open_.erase(first + 1, last);
    }
    if (open_.size() > most) fold();
  }
  Nanoseconds total() const noexcept { return total_; }

 private:
  struct Interval {
    Nanoseconds begin;
    Nanoseconds end;
  };
  static constexpr std::size_t most = 8192;

  /// Forgets the older half: nothing that began before its end is expected any more.
  void fold() {
    folded_until_ = open_[most / 2 - 1].end;
    open_.erase(open_.begin(), open_.begin() + most / 2);
  }

  Nanoseconds total_ = 0;
  Nanoseconds folded_until_ = 0;
  std::vector<Interval> open_;  ///< Disjoint, ascending.
};

}  // namespace quadriga
