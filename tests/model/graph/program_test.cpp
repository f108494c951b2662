// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/program_test.cpp: random programs give to the bit what they give one after
// another, on one to four devices of three tiles, under both clocks and both policies.
//
// A failure names its seed; QUADRIGA_TEST_SEED=N runs that program alone, QUADRIGA_TEST_TIMES=N as
// many times more programs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "model/graph/random_program.h"

namespace quadriga {
namespace {

/// Everything about a run follows from its seed.
std::string run_one(std::uint64_t seed, bool virtual_clock) {
  Random random(mix(seed));
  ProgramOptions program_options;
  program_options.tasks = 50 + static_cast<int>(random.below(40));
  program_options.most_bytes = std::size_t{2048} << random.below(3);
  const int devices = 1 + static_cast<int>(random.below(4));
  const int cores = static_cast<int>(random.below(3));
  EngineOptions options;
  options.machine = small_machine(random, devices, cores, program_options.most_bytes);
  options.policy = random.chance(0.5) ? "affinity" : "steal";
  options.seed = seed;
  options.virtual_clock = virtual_clock;
  options.protect = virtual_clock && random.chance(0.25);
  options.window = random.chance(0.5) ? 4096 : 16 + random.below(48);
  options.host_memory = std::size_t{1} << 30;
  RandomProgram program(random(), program_options, devices + (cores > 0));
  return program.run(options);
}

std::string run_on_host(std::uint64_t seed) {
  Random random(mix(seed));
  EngineOptions options;
  options.devices = fmt::format("cpu:{}", 1 + random.below(3));
  options.policy = random.chance(0.5) ? "affinity" : "steal";
  options.window = random.chance(0.5) ? 4096 : 16 + random.below(48);
  RandomProgram program(random(), {}, 1);
  return program.run(options);
}

/// Runs the programs of `count` seeds, or the one that the environment names, or more of them.
template <class Run>
void run_many(std::uint64_t first, int count, Run&& run) {
  if (one_seed()) first = test_seed(0), count = 1;
  if (const char* const times = std::getenv("QUADRIGA_TEST_TIMES")) count *= std::atoi(times);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    const std::string wrong = run(seed);
    ASSERT_EQ(wrong, "") << "replay with QUADRIGA_TEST_SEED=" << seed;
  }
}

TEST(RandomPrograms, VirtualClock) {
  run_many(1, 3000, [](std::uint64_t seed) { return run_one(seed, true); });
}

TEST(RandomPrograms, RealClock) {
  run_many(100'001, 200, [](std::uint64_t seed) { return run_one(seed, false); });
}

TEST(RandomPrograms, HostPool) {
  run_many(200'001, 300, [](std::uint64_t seed) { return run_on_host(seed); });
}

}  // namespace
}  // namespace quadriga
