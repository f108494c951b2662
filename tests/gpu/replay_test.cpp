// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/replay_test.cpp: what a scheduler decided for GPUs follows from its log alone.
#include "device/cuda/cuda_backend.h"
#include "gpu/host_body.h"
#include "model/graph/logged_run.h"
#include "model/graph/random_program.h"

namespace quadriga {
namespace {

TEST(ReplayOnGpu, GivesTheSameInstructions) {
  if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
  give_cuda_variants(on_stream);
  for (const std::uint64_t seed : {600'001, 600'101, 600'201}) {
    ProgramRun made = make_gpu_run(seed);
    const std::string log = logged_run([&] { EXPECT_EQ(made.program.run(made.options), ""); });
    const ReplayResult result = replay_text(log);
    ASSERT_EQ(result.difference, "") << "seed " << seed;
    EXPECT_GT(result.instructions, 50u);
  }
}

}  // namespace
}  // namespace quadriga
