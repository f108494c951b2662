// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/renaming_test.cpp: random programs give to the bit what they give one after
// another when overwritten data are renamed, with memory for one tile, for a few and for all.
//
// QUADRIGA_TEST_SEED=N runs that program alone, QUADRIGA_TEST_TIMES=N as many times more.
#include <gtest/gtest.h>

#include "model/graph/random_program.h"
#include "sanitized.h"

namespace quadriga {
namespace {

constexpr std::uint64_t programs = is_thread_sanitized ? 30 : is_sanitized ? 200 : 400;
constexpr std::size_t tile_bytes = 8192;  // the largest

class RenamedPrograms : public testing::TestWithParam<std::size_t> {
 protected:
  /// Some are renamed in all but few programs, unless tasks end before others are submitted.
  void run(bool virtual_clock, std::uint64_t count) {
    const Seeds seeds = test_seeds(400'001, count);
    std::uint64_t renaming = 0;
    for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
      ProgramRun made = make_run(seed, virtual_clock);
      made.options.host_memory = std::size_t{1} << 30;
      made.options.renaming_bytes = GetParam() * tile_bytes;
      ASSERT_EQ(made.program.run(made.options), "") << "replay with QUADRIGA_TEST_SEED=" << seed;
      renaming += made.program.renamed() > 0;
    }
    if (virtual_clock && seeds.count > 1) {
      EXPECT_GT(renaming, seeds.count / 4);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Tiles, RenamedPrograms, testing::Values(1, 3, 1000));

TEST_P(RenamedPrograms, VirtualClock) { run(true, programs); }
TEST_P(RenamedPrograms, RealClock) { run(false, programs / 10); }

}  // namespace
}  // namespace quadriga
