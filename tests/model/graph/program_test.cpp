// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/program_test.cpp: random programs give to the bit what they give one after
// another, on one to four devices of three tiles, under both clocks and both policies.
//
// A failure names its seed; QUADRIGA_TEST_SEED=N runs that program alone, QUADRIGA_TEST_TIMES=N as
// many times more programs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/graph/random_program.h"
#include "sanitized.h"

namespace quadriga {
namespace {

constexpr std::uint64_t virtual_programs = is_thread_sanitized ? 100 : is_sanitized ? 300 : 3000;

template <class Run>
void run_many(Seeds seeds, Run&& run) {
  for (std::uint64_t i = 0; i < seeds.count; ++i) {
    const std::string wrong = run(seeds.first + i);
    ASSERT_EQ(wrong, "") << "replay with QUADRIGA_TEST_SEED=" << seeds.first + i;
  }
}

TEST(RandomPrograms, VirtualClock) {
  run_many(test_seeds(1, virtual_programs),
           [](std::uint64_t seed) { return run_on_devices(seed, true); });
}

TEST(RandomPrograms, RealClock) {
  run_many(test_seeds(100'001, is_sanitized && !is_thread_sanitized ? 60 : 200),
           [](std::uint64_t seed) { return run_on_devices(seed, false); });
}

TEST(RandomPrograms, OfUnknownCost) {
  ASSERT_EQ(run_in_batches(test_seeds(300'001, is_sanitized ? 200 : 600)), "");
}

TEST(RandomPrograms, HostPool) {
  run_many(test_seeds(200'001, 300), [](std::uint64_t seed) { return run_on_host(seed); });
}

}  // namespace
}  // namespace quadriga
