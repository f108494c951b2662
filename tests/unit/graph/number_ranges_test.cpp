// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/graph/number_ranges_test.cpp: sets of numbers that come in rows.
#include "graph/number_ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace quadriga {
namespace {

TEST(NumberRangesTest, HoldsWhatWasAddedInAnyOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    NumberRanges ranges;
    std::set<std::uint64_t> expected;
    for (int i = 0; i < 60; ++i) {
      const std::uint64_t number = random() % 80;
      ranges.add(number);
      expected.insert(number);
    }
    std::size_t rows = 0;
    for (std::uint64_t number = 0; number < 82; ++number) {
      EXPECT_EQ(ranges.contains(number), expected.contains(number)) << number;
      rows += expected.contains(number) && !expected.contains(number + 1);
    }
    EXPECT_EQ(ranges.ranges(), rows);
  }
}

}  // namespace
}  // namespace quadriga
