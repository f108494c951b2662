// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/base/random_test.cpp: the generator is fixed for ever, bounded and splittable.
#include "base/random.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace quadriga {
namespace {

static_assert(std::uniform_random_bit_generator<Random>);

TEST(Random, FollowsThePublishedMixer) {
  // First outputs of splitmix64 from state 0, as its authors' program prints them.
  EXPECT_EQ(mix(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(mix(0x9e3779b97f4a7c15u), 0x6e789e6aa1b965f4u);
}

TEST(Random, RepeatsFromASeed) {
  Random first(7);
  Random second(7);
  Random other(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t value = first();
    EXPECT_EQ(value, second());
    differs |= value != other();
  }
  EXPECT_TRUE(differs);
}

TEST(Random, BelowReachesEveryValueEvenly) {
  Random random(1);
  std::array<int, 10> counts{};
  for (int i = 0; i < 100000; ++i) ++counts[random.below(10)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(random.below(0), 0u);
  EXPECT_EQ(random.below(1), 0u);
  const std::uint64_t large = std::uint64_t{3} << 62;
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.below(large), large);
}

TEST(Random, UniformStaysInItsInterval) {
  Random random(2);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double value = random.uniform();
    EXPECT_GE(value, 0);
    EXPECT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
  EXPECT_FALSE(random.chance(0));
  EXPECT_TRUE(random.chance(1));
}

TEST(Random, SplitStreamsShareNothing) {
  Random parent(3);
  Random left = parent.split();
  Random right = parent.split();
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    seen.insert(parent());
    seen.insert(left());
    seen.insert(right());
  }
  EXPECT_EQ(seen.size(), 3000u);
}

}  // namespace
}  // namespace quadriga
