// SPDX-License-Identifier: BSD-3-Clause
// tests/model/planted/layout_test.cpp: random layouts find a bug that was planted in their forms.
//
// Built once for each bug, with a changed copy of one source of src/message (tests/CMakeLists.txt).
#include <gtest/gtest.h>

#include "unit/message/random_layout.h"

namespace quadriga::message {
namespace {

TEST(PlantedBug, IsFoundByRandomLayouts) {
  constexpr int most = 20'000;
  int found = 0;
  for (int seed = 1; seed <= most; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    found += !layout_fault(draw_layout(random, 1 + seed % 4)).empty();
  }
  EXPECT_GT(found, 0) << "none of " << most << " layouts met the bug " << QUADRIGA_PLANTED;
  RecordProperty("found", found);
}

}  // namespace
}  // namespace quadriga::message
