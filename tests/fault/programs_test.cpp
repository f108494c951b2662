// SPDX-License-Identifier: BSD-3-Clause
// tests/fault/programs_test.cpp: random programs on backends that fail: whatever isn't reported
// lost is right, every error is of a fault's kind, and everything ends. Some find too few buffers
// on the host as well.
//
// A failure names its seed; QUADRIGA_TEST_SEED=N runs that program alone.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "base/log.h"
#include "device/factory.h"
#include "model/graph/random_program.h"
#include "sanitized.h"

namespace quadriga {
namespace {

using MakePlan = std::function<FaultPlan(Random& random, int devices)>;

struct Fault {
  const char* name;
  MakePlan plan;
  friend void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }
};

DeviceId some_device(Random& random, int devices) {
  return static_cast<DeviceId>(random.below(static_cast<std::uint64_t>(devices)));
}

std::vector<std::uint64_t> some_numbers(Random& random, std::uint64_t most) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < 4; ++i) numbers.push_back(1 + random.below(most));
  return numbers;
}

void lose(FaultPlan& plan, Random& random, int devices) {
  plan.losses.push_back({some_device(random, devices), random.below(120)});
}

const Fault faults[] = {
    {"Allocations",
     [](Random& random, int devices) {
       FaultPlan plan;
       plan.allocation_probability = random.chance(0.1) ? 1 : 0.5;
       plan.allocations = {1 + random.below(static_cast<std::uint64_t>(devices))};
       return plan;
     }},
    {"Copies",
     [](Random& random, int) {
       FaultPlan plan;
       plan.copy_probability = random.chance(0.5) ? 0.01 : 0.1;
       return plan;
     }},
    {"Launches",
     [](Random& random, int) {
       FaultPlan plan;
       plan.launch_probability = random.chance(0.5) ? 0.01 : 0.1;
       return plan;
     }},
    {"RefusedLaunches",
     [](Random& random, int) {
       FaultPlan plan;
       plan.refused_launches = some_numbers(random, 60);
       return plan;
     }},
    {"OneDeviceLost",
     [](Random& random, int devices) {
       FaultPlan plan;
       lose(plan, random, devices);
       return plan;
     }},
    {"AllDevicesLost",
     [](Random& random, int devices) {
       FaultPlan plan;
       for (int i = 0; i < devices; ++i)
         plan.losses.push_back({static_cast<DeviceId>(i), random.below(80)});
       return plan;
     }},
    {"Everything",
     [](Random& random, int devices) {
       FaultPlan plan;
       plan.copy_probability = 0.02;
       plan.launch_probability = 0.01;
       plan.refused_launches = some_numbers(random, 200);
       lose(plan, random, devices);
       return plan;
     }},
};

class FaultyProgramsTest : public testing::TestWithParam<Fault> {
 protected:
  void run(Seeds seeds, bool virtual_clock) {
    set_log_level(LogLevel::off);
    int lost = 0;
    for (std::uint64_t i = 0; i < seeds.count; ++i) {
      const std::uint64_t seed = seeds.first + i;
      ProgramRun made = make_run(seed, virtual_clock);
      Random random(seed);
      FaultPlan plan = GetParam().plan(random, made.devices);
      if (random.chance(0.3)) made.options.host_memory = (1 + random.below(12)) * 4096;
      plan.seed = seed;
      made.options.wrap_backend = [&plan](std::unique_ptr<Backend> backend) {
        return make_faulty_backend(std::move(backend), plan);
      };
      const std::string wrong = made.program.run_despite_faults(made.options, lost);
      ASSERT_EQ(wrong, "") << "replay with QUADRIGA_TEST_SEED=" << seed;
    }
    RecordProperty("lost", lost);
  }
};

INSTANTIATE_TEST_SUITE_P(, FaultyProgramsTest, testing::ValuesIn(faults),
                         [](const auto& given) { return std::string(given.param.name); });

TEST_P(FaultyProgramsTest, VirtualClock) {
  run(test_seeds(1, is_thread_sanitized ? 50 : is_sanitized ? 150 : 500), true);
}

TEST_P(FaultyProgramsTest, RealClock) { run(test_seeds(100'001, 30), false); }

}  // namespace
}  // namespace quadriga
