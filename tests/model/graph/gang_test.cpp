// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/gang_test.cpp: random programs of tasks that start together end, with the
// contents that one task after another gives; and the order of claims alone.
//
// QUADRIGA_TEST_SEED=N runs that program alone.
#include <gtest/gtest.h>

#include "base/log.h"
#include "model/graph/logged_run.h"
#include "model/graph/random_gangs.h"
#include "sanitized.h"
#include "schedule/gang_claims.h"

namespace quadriga {
namespace {

void run_all(Seeds seeds, const GangOptions& options) {
  for (std::uint64_t i = 0; i < seeds.count; ++i)
    ASSERT_EQ(run_gangs(seeds.first + i, options), "") << "replay with QUADRIGA_TEST_SEED";
}

TEST(RandomGangs, VirtualClock) {
  run_all(test_seeds(1, is_sanitized ? 100 : 300), {.virtual_clock = true});
}

TEST(RandomGangs, EmulatedDevices) { run_all(test_seeds(10'000, 60), {}); }

TEST(RandomGangs, EndWhereKernelsFail) {
  run_all(test_seeds(20'000, 60), {.virtual_clock = true, .fault_probability = 0.05});
  run_all(test_seeds(30'000, 30), {.fault_probability = 0.05});
}

TEST(RandomGangs, EndWhereADeviceIsLost) {
  set_log_level(LogLevel::off);
  run_all(test_seeds(40'000, 100), {.virtual_clock = true, .loses_device = true});
  run_all(test_seeds(50'000, 60), {.loses_device = true});
}

TEST(RandomGangs, AreDecidedAgainTheSameWay) {
  for (std::uint64_t seed = 60'000; seed < 60'020; ++seed) {
    const std::string log =
        logged_run([&] { EXPECT_EQ(run_gangs(seed, {.virtual_clock = seed % 2 == 0}), ""); });
    const ReplayResult result = replay_text(log);
    EXPECT_EQ(result.difference, "") << "seed " << seed;
    EXPECT_GT(result.tasks, 0u);
  }
}

TEST(RandomGangs, ClaimsHaveOneOrderAndAllStart) {
  const Seeds seeds = test_seeds(1, 300);
  for (std::uint64_t i = 0; i < seeds.count; ++i)
    ASSERT_EQ(run_claims(seeds.first + i), "") << "replay with QUADRIGA_TEST_SEED";
}

TEST(GangClaims, DevicesAreThoseOfTheOldest) {
  GangClaims claims;
  claims.claim(7, 0b011);
  claims.claim(8, 0b110);
  claims.claim(7, 0b111);  // it has claims
  EXPECT_EQ(claims.claimed(), 0b111u);
  EXPECT_EQ(claims.oldest(), 7u);
  EXPECT_EQ(claims.first(1), 7u);
  EXPECT_EQ(claims.first(2), 8u);
  EXPECT_FALSE(claims.has_turn(8, 0b110));
  EXPECT_TRUE(claims.has_turn(9, 0b1000));
  claims.drop(7);
  EXPECT_EQ(claims.first(0), 0u);
  EXPECT_TRUE(claims.has_turn(8, 0b110));
}

}  // namespace
}  // namespace quadriga
