// SPDX-License-Identifier: BSD-3-Clause
// tests/model/soak/soak_test.cpp: random machines, graphs, policies, rules of eviction, memory
// limits, wrong figures and faults, all drawn from a seed.
//
// A run gives to the bit what its tasks give one after another, but for what an injected fault is
// reported to have cost; from the schedule's log its decisions follow again, with all invariants
// after each event. By the virtual clock, so that a seed is the same run everywhere.
//
// A failure names its seed; QUADRIGA_TEST_SEED=N runs it alone, QUADRIGA_TEST_TIMES=N as many times
// more, and tools/soak as many as there is time for.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <quadriga/policy.h>

#include <chrono>
#include <cstdlib>

#include "base/log.h"
#include "contract/policy/from_outside.h"
#include "device/factory.h"
#include "model/graph/logged_run.h"
#include "model/graph/random_program.h"
#include "model/soak/random_machine.h"
#include "sanitized.h"

namespace quadriga {
namespace {

/// What everything about a run follows from.
struct Case {
  WrappedOptions options;
  std::string eviction;
  FaultPlan faults;
  bool fails = false;
  bool is_replayed = false;
  RandomProgram program;
};

FaultPlan random_faults(Random& random, int devices) {
  FaultPlan plan;
  plan.seed = random();
  if (random.chance(0.5)) plan.copy_probability = random.chance(0.5) ? 0.01 : 0.1;
  if (random.chance(0.4)) plan.launch_probability = random.chance(0.5) ? 0.01 : 0.1;
  if (random.chance(0.3)) plan.refused_launches = {1 + random.below(60), 1 + random.below(60)};
  if (random.chance(0.2))
    plan.allocations = {1 + random.below(static_cast<std::uint64_t>(devices))};
  const bool loses_all = random.chance(0.1);
  for (int device = 0; device < devices; ++device)
    if (loses_all || random.chance(0.2))
      plan.losses.push_back({static_cast<DeviceId>(device), random.below(120)});
  return plan;
}

std::string some_policy(Random& random) {
  const std::vector<PolicyInfo> known = policies();
  return known[random.below(known.size())].name;
}

Case make_case(std::uint64_t seed) {
  Random random(mix(seed));
  ProgramOptions program;
  program.tasks = 30 + static_cast<int>(random.below(60));
  program.most_bytes = std::size_t{2048} << random.below(3);
  program.nested = random.chance(0.7);
  program.few_buffers = random.chance(0.3);
  WrappedOptions options;
  options.machine = random_machine(random, program.most_bytes);
  if (random.chance(0.3)) options.believed = mistaken(*options.machine, random);
  options.policy = some_policy(random);
  options.seed = random();
  options.virtual_clock = true;
  options.protect = random.chance(0.1);
  options.window = random.chance(0.5) ? 4096 : 16 + random.below(48);
  const auto devices = static_cast<int>(options.machine->devices.size());
  const bool has_cores = options.machine->devices.back().kind == DeviceKind::cpu;
  RandomProgram made(random(), program, devices);
  options.host_memory = program.few_buffers ? made.least_host_memory() : std::size_t{1} << 30;
  constexpr std::string_view rules[] = {"policy", "farthest_use", "least_recent", "read_first"};
  Case found{std::move(options),
             std::string(rules[random.below(4)]),
             {},
             random.chance(0.4),
             random.chance(0.3),
             std::move(made)};
  if (found.fails) {
    found.faults = random_faults(random, devices - has_cores);
    if (random.chance(0.2)) found.options.host_memory = (1 + random.below(12)) * 4096;
  }
  return found;
}

std::string run(Case& given) {
  int lost = 0;
  if (!given.fails) return given.program.run(given.options);
  given.options.wrap_backend = [&](std::unique_ptr<Backend> backend) {
    return make_faulty_backend(std::move(backend), given.faults);
  };
  return given.program.run_despite_faults(given.options, lost);
}

/// Empty, or what was wrong.
std::string soak(std::uint64_t seed) {
  Case given = make_case(seed);
  Config::global().set("eviction", given.eviction);
  std::string wrong;
  if (!given.is_replayed) {
    wrong = run(given);
  } else {
    const std::string log = logged_run([&] { wrong = run(given); });
    std::istringstream lines(log);
    // Without a device left there may be no engine, and no log.
    if (wrong.empty() && !log.empty()) wrong = replay(lines, 1).difference;
  }
  Config::global().unset("eviction");
  if (wrong.empty()) return {};
  return fmt::format("policy {}, eviction {}{}{}: {}", given.options.policy, given.eviction,
                     given.fails ? ", faults" : "", given.is_replayed ? ", replayed" : "", wrong);
}

using Clock = std::chrono::steady_clock;

/// When the time that tools/soak gives is over.
Clock::time_point end_of_time() {
  const char* const seconds = std::getenv("QUADRIGA_TEST_SECONDS");
  if (seconds == nullptr) return Clock::time_point::max();
  return Clock::now() + std::chrono::seconds(std::strtoll(seconds, nullptr, 10));
}

Seeds soak_seeds(bool has_end) {
  const char* const first = std::getenv("QUADRIGA_TEST_FIRST");
  Seeds seeds = test_seeds(first ? std::strtoull(first, nullptr, 10) : 1, is_thread_sanitized ? 30
                                                                          : is_sanitized      ? 100
                                                                                         : 300);
  if (has_end && std::getenv("QUADRIGA_TEST_SEED") == nullptr) seeds.count = UINT64_MAX;
  return seeds;
}

TEST(Soak, KeepsEveryInvariant) {
  set_log_level(LogLevel::off);
  register_round_robin();
  register_hostile();
  const Clock::time_point end = end_of_time();
  const Seeds seeds = soak_seeds(end != Clock::time_point::max());
  std::uint64_t done = 0;
  for (; done < seeds.count && Clock::now() < end; ++done)
    ASSERT_EQ(soak(seeds.first + done), "")
        << "replay with QUADRIGA_TEST_SEED=" << seeds.first + done;
  fmt::print("{} seeds from {}: each kept every invariant\n", done, seeds.first);
}

}  // namespace
}  // namespace quadriga
