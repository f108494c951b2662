// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/graph/regions_test.cpp: which data in memory overlap.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "graph/regions.h"

namespace quadriga {
namespace {

TEST(RegionsTest, ColumnsThatInterleaveShareNothing) {
  const Region a{1000, 8, 10, 16};
  EXPECT_FALSE(overlap(a, {1008, 8, 10, 16}));
  EXPECT_TRUE(overlap(a, {1012, 8, 10, 16}));
  EXPECT_TRUE(overlap(a, {1016, 1, 1, 0}));
  EXPECT_FALSE(overlap(a, {1024 - 8, 0, 1, 0}));
  EXPECT_FALSE(overlap(a, {1040, 0, 1, 0}));
  EXPECT_FALSE(overlap(a, {1008, 8, 1, 0}));
  EXPECT_TRUE(overlap({1008, 9, 1, 0}, a));
  EXPECT_TRUE(overlap(a, {1008, 8, 10, 24})) << "their ranges do, which is all that is looked at";
  EXPECT_FALSE(overlap(a, {1152, 8, 10, 24})) << "behind the last column";
}

/// Against a map of bytes.
TEST(RegionsTest, OverlapIsWhatBytesSay) {
  std::uint64_t state = 1;
  const auto below = [&](std::uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  };
  for (int round = 0; round < 20000; ++round) {
    const std::size_t pitch = 1 + below(12);
    const auto some = [&] {
      Region region{50 + below(60), 1 + below(pitch), 1 + below(5), pitch};
      if (below(4) == 0) region = {region.first, 1 + below(30), 1, below(9)};
      return region;
    };
    const Region a = some();
    const Region b = some();
    std::array<int, 400> bytes{};
    for (std::size_t j = 0; j < a.columns; ++j)
      for (std::size_t i = 0; i < a.width; ++i) bytes[a.first + j * a.pitch + i] = 1;
    bool shared = false;
    for (std::size_t j = 0; j < b.columns; ++j)
      for (std::size_t i = 0; i < b.width; ++i) shared |= bytes[b.first + j * b.pitch + i] == 1;
    ASSERT_EQ(overlap(a, b), shared) << round;
    ASSERT_EQ(overlap(b, a), shared) << round;
  }
}

}  // namespace
}  // namespace quadriga
