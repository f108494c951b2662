// SPDX-License-Identifier: BSD-3-Clause
// tests/model/planted/memory_test.cpp: random programs find a bug that was planted in the memory.
//
// Built once for each bug, with a changed copy of a file of src/memory (tests/CMakeLists.txt).
#include <gtest/gtest.h>

#include "base/log.h"
#include "model/graph/random_program.h"

namespace quadriga {
namespace {

TEST(PlantedBug, IsFoundByRandomPrograms) {
  constexpr int most = 100;
  set_log_level(LogLevel::off);  // engines that met the bug say so when they end
  int found = 0;
  for (int seed = 1; seed <= most; ++seed)
    found += !run_on_devices(static_cast<std::uint64_t>(seed), true).empty();
  EXPECT_GT(found, 0) << "none of " << most << " programs met the bug " << QUADRIGA_PLANTED;
  RecordProperty("found", found);
}

}  // namespace
}  // namespace quadriga
