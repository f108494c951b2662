// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/tiles_test.cpp: through how many slots the tiles of a matrix pass whose
// elements lie apart.
#include "linalg/tiles.h"

#include <gtest/gtest.h>

namespace quadriga::linalg {
namespace {

std::int64_t slots_on(const char* devices, std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t tile = 64;
  return slots_for(Machine::parse(devices), {rows * tile, tile}, {cols * tile, tile},
                   DType::float64);
}

TEST(Slots, EachCoreHasOneToUseAndOneThatIsFilled) {
  EXPECT_GE(slots_on("cpu:64", 20, 20), 2 * 64);
  EXPECT_GE(slots_on("cpu:64", 2, 200), 2 * 64);
  EXPECT_EQ(slots_on("cpu:64", 3, 4), 12) << "no more than there are tiles";
}

TEST(Slots, ARowAndAColumnStay) {
  for (const std::int64_t count : {5, 20, 200})
    EXPECT_GE(slots_on("cpu:1", count, count), 2 * count);
  EXPECT_LT(slots_on("cpu:1", 200, 200), 200 * 200 / 16) << "the matrix isn't copied as a whole";
}

TEST(Slots, AsManyAsTheDevicesHold) {
  EXPECT_EQ(slots_on("emulated:2,memory=32MiB", 200, 200), 2 * 32 * 32);
}

}  // namespace
}  // namespace quadriga::linalg
