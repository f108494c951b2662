// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/busy_union_test.cpp: the length of a union of intervals, beside counting it.
#include "engine/busy_union.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace quadriga {
namespace {

class Counted {
 public:
  void add(Nanoseconds begin, Nanoseconds end) {
    union_.add(begin, end);
    if (end > std::ssize(is_busy_)) is_busy_.resize(static_cast<std::size_t>(end));
    for (Nanoseconds at = begin; at < end; ++at) is_busy_[static_cast<std::size_t>(at)] = true;
  }
  Nanoseconds found() const { return union_.total(); }
  Nanoseconds expected() const { return std::ranges::count(is_busy_, true); }

 private:
  BusyUnion union_;
  std::vector<bool> is_busy_;
};

TEST(BusyUnion, WhatTouchesOrOverlapsIsOne) {
  Counted all;
  all.add(10, 20);
  all.add(30, 40);
  EXPECT_EQ(all.found(), 20);
  all.add(20, 30);
  EXPECT_EQ(all.found(), 30);
  all.add(5, 50);
  EXPECT_EQ(all.found(), 45);
  all.add(7, 7);
  EXPECT_EQ(all.found(), all.expected());
}

TEST(BusyUnion, OldIntervalsFindTheirPlaceAmongManyNewOnes) {
  Counted all;
  for (Nanoseconds at = 0; at < 1000; at += 10) all.add(at + 2, at + 4);
  all.add(3, 27);
  EXPECT_EQ(all.found(), all.expected());
  all.add(500, 995);
  EXPECT_EQ(all.found(), all.expected());
  all.add(0, 1);
  EXPECT_EQ(all.found(), all.expected());
}

TEST(BusyUnion, RandomOrdersCountTheSame) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    const std::uint64_t back = 1 + random.below(200);  // how far from the order of ends
    Counted all;
    for (int i = 0; i < 300; ++i) {
      const auto begin =
          static_cast<Nanoseconds>(static_cast<std::uint64_t>(i) * 3 + random.below(back));
      all.add(begin, begin + static_cast<Nanoseconds>(random.below(6)));
      ASSERT_EQ(all.found(), all.expected()) << "seed " << seed << ", interval " << i;
    }
  }
}

}  // namespace
}  // namespace quadriga
