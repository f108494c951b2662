// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/host_victim_test.cpp: devices take tasks of known time from the host's cores,
// where the policy says so.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <vector>

namespace quadriga {
namespace {

/// The kernels that each device runs of tasks that a core takes much longer for than a GPU, and
/// that all become ready by a task of the host's.
std::vector<std::uint64_t> kernels(const char* policy) {
  constexpr std::int64_t order = 960;
  constexpr int tasks = 64;
  EngineOptions options;
  options.devices = "machine=" QUADRIGA_SOURCE_DIR "/machines/idgraf.json:2,cpu=on";
  options.policy = policy;
  options.virtual_clock = true;
  options.compute = false;
  Engine engine(options);
  Codelet first;
  first.name = "first";
  first.access = {Access::write};
  first.cpu = [](const Arguments&) {};
  first.cost = [](const Arguments&) { return Cost::of_seconds(1e-6); };
  first.host_only = true;
  Codelet update;
  update.name = "update";
  update.access = {Access::read, Access::write};
  update.cpu = [](const Arguments&) {};
  update.cost = [](const Arguments&) {
    return Cost{"sgemm", order, static_cast<double>(order * order * order)};
  };
  const Data read = engine.temporary(order, order, DType::float32);
  engine.submit(first, {{read, Access::write}});
  for (int i = 0; i < tasks; ++i)
    engine.submit(update, {{read, Access::read},
                           {engine.temporary(order, order, DType::float32), Access::write}});
  engine.wait();
  std::vector<std::uint64_t> counted;
  for (const DeviceCounters& device : engine.counters().devices) counted.push_back(device.tasks);
  return counted;
}

TEST(HostVictim, LosesTasksOfKnownTimeUnderSteal) {
  const std::vector<std::uint64_t> counted = kernels("steal");
  ASSERT_EQ(counted.size(), 3u);
  EXPECT_GT(counted[0], 5u);
  EXPECT_GT(counted[1], 5u);
}

}  // namespace
}  // namespace quadriga
