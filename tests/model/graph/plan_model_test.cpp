// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/plan_model_test.cpp: the plan and its parts beside plain models of them.
#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "model/graph/random_plan.h"
#include "sanitized.h"
#include "schedule/sorted_blocks.h"

namespace quadriga {
namespace {

TEST(PlanModel, SaysWhatALookAtEveryTaskSays) {
  for (std::uint64_t seed = 1; seed <= (is_sanitized ? 20 : 60); ++seed)
    EXPECT_EQ(run_random_plan(seed, false), "") << "seed " << seed;
}

TEST(PlanModel, KnowsWhatIsInSightOfManyTasks) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    EXPECT_EQ(run_random_plan(seed, true), "") << "seed " << seed;
}

/// Keys that come in order, at random, or near both ends; `most` of them at once.
void compare_with_set(std::uint64_t seed, std::size_t most) {
  Random random(seed);
  SortedBlocks<std::uint64_t, std::uint64_t> found;
  std::set<std::uint64_t> expected;
  std::uint64_t last = 1'000'000;
  for (int step = 0; step < 20'000; ++step) {
    if (expected.size() < most && random.chance(0.55)) {
      const std::uint64_t key = random.chance(0.5) ? ++last : random.below(last);
      if (expected.insert(key).second) found.insert(key, key + 1);
    } else if (!expected.empty()) {
      const bool is_first = random.chance(0.5);
      const auto near = is_first ? expected.begin() : expected.lower_bound(random.below(last));
      const std::uint64_t key = near == expected.end() ? random.below(last) : *near;
      ASSERT_EQ(found.erase(key), expected.erase(key) == 1) << "seed " << seed << ": " << key;
    }
    const std::uint64_t asked = random.below(last + 2);
    const auto above = found.upper_bound(asked);
    const auto right = expected.upper_bound(asked);
    ASSERT_EQ(above == found.end(), right == expected.end()) << "seed " << seed;
    if (right != expected.end()) {
      ASSERT_EQ(above.key(), *right) << "seed " << seed;
    }
    ASSERT_EQ(found.contains(asked), expected.contains(asked)) << "seed " << seed;
    if (right != expected.begin()) {
      ASSERT_EQ(found.last_until(asked), *std::prev(right) + 1);
    }
    if (step % 100 != 0) continue;
    found.validate();
    ASSERT_EQ(found.size(), expected.size());
    ASSERT_TRUE(std::ranges::equal(found, expected, {}, {}, [](auto key) { return key + 1; }));
  }
}

TEST(SortedBlocks, AreASet) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    compare_with_set(seed, 40);
    compare_with_set(seed, 3000);
  }
}

}  // namespace
}  // namespace quadriga
