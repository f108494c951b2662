// SPDX-License-Identifier: BSD-3-Clause
// tests/model/planted/plan_test.cpp: random events find a bug that was planted in the plan, in the
// order of a tile's uses, or in the lookahead.
//
// Built once for each bug, with a changed copy of one source of src/graph (tests/CMakeLists.txt).
#include <gtest/gtest.h>

#include "model/graph/random_plan.h"

namespace quadriga {
namespace {

TEST(PlantedBug, IsFoundByRandomEvents) {
  constexpr int most = 20;
  int found = 0;
  for (int seed = 1; seed <= most; ++seed)
    found += !run_random_plan(static_cast<std::uint64_t>(seed), false).empty();
  EXPECT_GT(found, 0) << "none of " << most << " runs met the bug " << QUADRIGA_PLANTED;
  RecordProperty("found", found);
}

}  // namespace
}  // namespace quadriga
