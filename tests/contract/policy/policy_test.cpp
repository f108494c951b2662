// SPDX-License-Identifier: BSD-3-Clause
// tests/contract/policy/policy_test.cpp: what must hold under every registered policy, those of a
// user and hostile ones included.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <algorithm>

#include "base/config.h"
#include "base/log.h"
#include "contract/policy/from_outside.h"
#include "model/graph/random_program.h"
#include "sanitized.h"

namespace quadriga {
namespace {

/// Before tests are listed.
std::vector<std::string> all_policies() {
  static const bool once = (register_round_robin(), register_hostile(), true);
  std::vector<std::string> names;
  if (once)
    for (const PolicyInfo& each : policies()) names.push_back(each.name);
  return names;
}

class PolicyContract : public testing::TestWithParam<std::string> {
 protected:
  // The hostile one has much to be warned of.
  void SetUp() override { set_log_level(LogLevel::error); }
  void TearDown() override { set_log_level(LogLevel::warning); }
  /// Random programs give what they give one after another.
  static void run_programs(Seeds seeds, bool virtual_clock) {
    for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
      ProgramRun run = make_run(seed, virtual_clock);
      run.options.policy = GetParam();
      ASSERT_EQ(run.program.run(run.options), "")
          << "replay with QUADRIGA_TEST_SEED=" << seed << " under " << GetParam();
    }
  }
  static EngineOptions options(const std::string& devices, bool virtual_clock = true) {
    EngineOptions options;
    options.machine = Machine::parse(devices);
    for (const char* const rates : {"emulated", ""})
      options.machine->kernels["count"][rates] = {{1, 1e-4}};
    options.policy = GetParam();
    options.virtual_clock = virtual_clock;
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Registered, PolicyContract, testing::ValuesIn(all_policies()),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(PolicyContract, ResultsAreTheSequentialOnes) {
  run_programs(test_seeds(1, is_thread_sanitized ? 30 : is_sanitized ? 60 : 300), true);
}

TEST_P(PolicyContract, ResultsAreTheSequentialOnesOnThreads) {
  run_programs(test_seeds(100'001, 25), false);
}

/// Counts in its tile how often it ran.
const Codelet& counting() {
  static const Codelet codelet{
      .name = "count",
      .access = {Access::update},
      .cpu = [](const Arguments& arguments) { *arguments.operands[0].as<double>() += 1; },
      .cost =
          [](const Arguments&) {
            return Cost{"count", 1, 1};
          }};
  return codelet;
}

/// Runs independent tasks, one a tile, and checks that each ran once.
Counters count_independent(const EngineOptions& options, std::size_t tasks) {
  std::vector<double> runs(tasks, 0);
  Engine engine(options);
  std::vector<Data> data;
  for (double& each : runs) {
    data.push_back(engine.data(&each, 1, 1, 1, DType::float64));
    engine.submit(counting(), {{data.back(), Access::update}});
  }
  engine.wait();
  for (const double each : runs) EXPECT_EQ(each, 1);
  EXPECT_EQ(engine.counters().ended, tasks);
  return engine.counters();
}

TEST_P(PolicyContract, EveryTaskRunsOnceAndNoDeviceStarves) {
  const Counters counters = count_independent(options("emulated:4,memory=1MiB"), 1000);
  for (std::size_t device = 0; device < 4; ++device)
    EXPECT_GT(counters.devices[device].tasks, 100u) << "device " << device;
}

TEST_P(PolicyContract, ResultsAreTheSequentialOnesWhateverRuleEvicts) {
  for (const char* const rule : {"farthest_use", "least_recent", "read_first"}) {
    Config::global().set("eviction", rule);
    run_programs(test_seeds(200'001, is_thread_sanitized ? 5 : is_sanitized ? 10 : 30), true);
  }
  Config::global().unset("eviction");
}

TEST_P(PolicyContract, EveryTaskRunsOnceOnTheHostsCores) {
  count_independent(options("cpu:2", false), 1000);
}

TEST_P(PolicyContract, EveryTaskRunsOnceWhereAllHaveOneOwnerThatIsShortOfRoom) {
  std::vector<double> runs(200, 0);
  Engine engine(options("emulated:2,memory=4KiB"));
  for (double& each : runs)
    engine.submit(counting(), {{engine.data(&each, 1, 1, 1, DType::float64), Access::update}},
                  {.owner = 1});
  engine.wait();
  EXPECT_EQ(std::ranges::count(runs, 1.0), 200);
}

}  // namespace
}  // namespace quadriga
