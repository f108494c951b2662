// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/program_test.cpp: random programs on GPUs of three tiles give to the bit what they give
// one task after another.
#include <gtest/gtest.h>

#include "device/cuda/cuda_backend.h"
#include "gpu/host_body.h"
#include "model/graph/random_program.h"

namespace quadriga {
namespace {

TEST(RandomPrograms, Gpus) {
  if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
  give_cuda_variants(on_stream);
  const Seeds seeds = test_seeds(300'001, 40);
  for (std::uint64_t i = 0; i < seeds.count; ++i) {
    const std::string wrong = run_on_gpus(seeds.first + i);
    ASSERT_EQ(wrong, "") << "replay with QUADRIGA_TEST_SEED=" << seeds.first + i;
  }
}

}  // namespace
}  // namespace quadriga
