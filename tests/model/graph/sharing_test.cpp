// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/sharing_test.cpp: random programs on shared memory give what a plain walk does.
//
// QUADRIGA_TEST_SEED=N runs that program alone, QUADRIGA_TEST_TIMES=N as many times the programs,
// QUADRIGA_TEST_FIRST=N those from N on.
#include <gtest/gtest.h>

#include "model/graph/random_program.h"
#include "model/graph/random_sharing.h"
#include "sanitized.h"

namespace quadriga {
namespace {

class RandomSharing : public testing::TestWithParam<Where> {
 protected:
  static constexpr std::uint64_t programs = is_thread_sanitized ? 20 : is_sanitized ? 60 : 200;
};

INSTANTIATE_TEST_SUITE_P(Engine, RandomSharing, every_engine(), where_name);

TEST_P(RandomSharing, ProgramsGiveWhatAPlainWalkGives) {
  const Seeds seeds = test_seeds(1, programs);
  for (std::uint64_t i = 0; i < seeds.count; ++i)
    ASSERT_EQ(run_sharing(seeds.first + i, GetParam()), "")
        << "replay with QUADRIGA_TEST_SEED=" << seeds.first + i;
}

TEST_P(RandomSharing, ThreadsAddUp) {
  const Seeds seeds = test_seeds(1, programs / 2);
  for (std::uint64_t i = 0; i < seeds.count; ++i)
    ASSERT_EQ(run_sharing_threads(seeds.first + i, GetParam()), "")
        << "replay with QUADRIGA_TEST_SEED=" << seeds.first + i;
}

}  // namespace
}  // namespace quadriga
