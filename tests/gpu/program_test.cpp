// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/program_test.cpp: random programs on GPUs of three tiles give to the bit what they give
// one task after another.
//
// QUADRIGA_TEST_SEED=N runs that program alone, on the machine of its batch; QUADRIGA_TEST_TIMES=N
// as many times more programs, and as long.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "device/cuda/cuda_backend.h"
#include "gpu/host_body.h"
#include "model/graph/random_program.h"

#ifndef QUADRIGA_TEST_PROGRAMS
#define QUADRIGA_TEST_PROGRAMS 3000
#endif

namespace quadriga {
namespace {

TEST(RandomPrograms, Gpus) {
  if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
  constexpr double most_seconds = 50;
  give_cuda_variants(on_stream);
  const char* const times = std::getenv("QUADRIGA_TEST_TIMES");
  std::uint64_t done = 0;
  const std::string wrong = run_on_gpus(test_seeds(300'000, QUADRIGA_TEST_PROGRAMS),
                                        most_seconds * (times ? std::atof(times) : 1), done);
  std::printf("%llu programs\n", static_cast<unsigned long long>(done));
  ASSERT_EQ(wrong, "") << "replay with QUADRIGA_TEST_SEED";
  EXPECT_GT(done, 0u);
}

}  // namespace
}  // namespace quadriga
