// SPDX-License-Identifier: BSD-3-Clause
// tests/model/planted/gang_test.cpp: random gangs find a bug that was planted in what starts them.
//
// Built once for each bug, with a changed copy of a file of src/schedule (tests/CMakeLists.txt).
#include <gtest/gtest.h>

#include "base/log.h"
#include "model/graph/random_gangs.h"

namespace quadriga {
namespace {

TEST(PlantedBug, IsFoundByRandomGangs) {
  constexpr std::uint64_t most = 100;
  set_log_level(LogLevel::off);  // engines that met the bug say so when they end
  int found = 0;
  for (std::uint64_t seed = 1; seed <= most && found == 0; ++seed)
    found += !run_gangs(seed, {.virtual_clock = true}).empty() || !run_claims(seed).empty();
  EXPECT_GT(found, 0) << "none of " << most << " programs met the bug " << QUADRIGA_PLANTED;
}

}  // namespace
}  // namespace quadriga
