// SPDX-License-Identifier: BSD-3-Clause
// tests/model/planted/revocations_test.cpp: random cancelling finds a bug that was planted in what
// takes tasks back.
#include <gtest/gtest.h>

#include "unit/engine/random_revocations.h"

namespace quadriga {
namespace {

TEST(PlantedBug, IsFoundByRandomCancelling) {
  constexpr std::uint64_t most = 100;
  int found = 0;
  for (std::uint64_t seed = 1; seed <= most && found == 0; ++seed)
    found += !run_random_revocations(seed).empty();
  EXPECT_GT(found, 0) << "none of " << most << " runs met the bug " << QUADRIGA_PLANTED;
}

}  // namespace
}  // namespace quadriga
