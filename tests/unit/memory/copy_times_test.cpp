// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/copy_times_test.cpp: answers are the machine's own, for every pair of spaces.
#include "memory/copy_times.h"

#include <gtest/gtest.h>

#include <cmath>

namespace quadriga {
namespace {

void expect_same(const Machine& machine) {
  const CopyTimes times(machine);
  const auto spaces = static_cast<SpaceId>(machine.spaces());
  for (SpaceId from = 0; from < spaces; ++from) {
    for (SpaceId to = 0; to < spaces; ++to) {
      EXPECT_EQ(times.joined(from, to), machine.route(from, to) != nullptr) << from << ", " << to;
      for (const double bytes : {0.0, 1.0, 8e6})
        EXPECT_EQ(times.seconds(from, to, bytes), machine.copy_seconds(from, to, bytes))
            << from << ", " << to;
    }
  }
}

TEST(CopyTimes, AreTheMachines) {
  expect_same(Machine::parse("emulated:3,h2d=4GB/s,d2h=3GB/s,peer=2GB/s,latency=1e-5"));
  const Machine apart = Machine::parse("emulated:2,peer=off");
  expect_same(apart);
  EXPECT_FALSE(CopyTimes(apart).joined(1, 2));
  EXPECT_TRUE(std::isinf(CopyTimes(apart).seconds(1, 2, 0)));
}

}  // namespace
}  // namespace quadriga
