// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/sharing_test.cpp: random programs on shared memory give a plain walk's results on GPUs.
//
// QUADRIGA_TEST_SEED=N runs that program alone, QUADRIGA_TEST_TIMES=N as many times the programs,
// QUADRIGA_TEST_FIRST=N those from N on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "device/cuda/cuda_backend.h"
#include "gpu/host_body.h"
#include "model/graph/random_program.h"
#include "model/graph/random_sharing.h"

namespace quadriga {
namespace {

/// Runs programs on engines of a GPU, some on each; what was wrong with the first that failed.
template <class Run>
std::string run_all(Seeds seeds, std::uint64_t on_an_engine, Run&& run) {
  std::optional<Engine> engine;
  for (std::uint64_t i = 0; i < seeds.count; ++i) {
    const std::uint64_t seed = seeds.first + i;
    if (i % on_an_engine == 0) {
      engine.reset();
      engine.emplace(EngineOptions{.devices = "cuda:1,memory=64MiB;cpu:1", .seed = seed});
    }
    if (const std::string wrong = run(seed, *engine); !wrong.empty())
      return fmt::format("{}; replay with QUADRIGA_TEST_SEED={}", wrong, seed);
  }
  return {};
}

class SharingOnGpu : public testing::Test {
 protected:
  static constexpr std::uint64_t programs = 100;
  void SetUp() override {
    if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
  }
};

TEST_F(SharingOnGpu, ProgramsGiveWhatAPlainWalkGives) {
  EXPECT_EQ(run_all(test_seeds(500'000, programs), 20,
                    [](std::uint64_t seed, Engine& e) { return run_sharing(seed, e, on_stream); }),
            "");
}

TEST_F(SharingOnGpu, ThreadsAddUp) {
  EXPECT_EQ(run_all(test_seeds(500'000, programs / 4), 1,
                    [](std::uint64_t seed, Engine& e) {
                      return run_sharing_threads(seed, e, on_stream);
                    }),
            "");
}

}  // namespace
}  // namespace quadriga
