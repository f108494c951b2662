// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/host_nodes_test.cpp: data without homes that leave devices for a host of two
// NUMA nodes: results are the same, and the time tells which node they were on.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <utility>
#include <vector>

namespace quadriga {
namespace {

constexpr std::int64_t rows = 8192;
constexpr std::size_t tile_bytes = rows * sizeof(double);
constexpr int tiles = 24, tiles_of_device = 4;

/// Two devices, each near a node, which have memory for so many tiles; copies to and from the other
/// node cross a link of a tenth of the rate.
Machine machine_of(std::size_t first_tiles, std::size_t second_tiles) {
  Machine machine = Machine::parse("emulated:2,memory=1MiB,h2d=10GB/s,d2h=10GB/s,latency=0");
  machine.kernels["step"]["emulated"][1] = 1e-8;
  machine.nodes = {{.index = 0, .memory_bytes = first_tiles * tile_bytes},
                   {.index = 1, .memory_bytes = second_tiles * tile_bytes}};
  const int between = static_cast<int>(machine.links.size());
  machine.links.push_back({.name = "between", .bytes_per_second = 1e9});
  for (Device& device : machine.devices) {
    device.memory_bytes = tiles_of_device * tile_bytes;
    device.node = device.space == 1 ? 0 : 1;
    for (const auto& [from, to] :
         {std::pair(host_space, device.space), std::pair(device.space, host_space)}) {
      Route far = *machine.route(from, to);
      far.links.push_back(between);
      far.node = 1 - device.node;
      machine.routes.push_back(far);
    }
  }
  return machine;
}

Codelet step(const char* name, Access access, Kernel kernel) {
  Codelet codelet;
  codelet.name = name;
  codelet.access = {access};
  codelet.cpu = std::move(kernel);
  codelet.cost = [](const Arguments&) { return Cost{"step", 1, 1}; };
  return codelet;
}

/// Fills tiles on the second device, which holds a few of them, and adds to each. Returns seconds.
double run(Machine machine, bool virtual_clock) {
  EngineOptions options;
  options.machine = std::move(machine);
  options.virtual_clock = virtual_clock;
  options.host_memory = tiles * tile_bytes;
  Engine engine(std::move(options));
  const Codelet fill = step("fill", Access::write, [](const Arguments& call) {
    for (std::int64_t i = 0; i < rows; ++i) call.operands[0].as<double>()[i] = 1;
  });
  const Codelet add = step("add", Access::update, [](const Arguments& call) {
    for (std::int64_t i = 0; i < rows; ++i) call.operands[0].as<double>()[i] += 1;
  });
  double sum = 0;
  const Codelet gather = step("gather", Access::read, [&sum](const Arguments& call) {
    for (std::int64_t i = 0; i < rows; ++i) sum += call.operands[0].as<double>()[i];
  });
  const SubmitOptions there{.device = 1};
  std::vector<Data> data;
  for (int i = 0; i < tiles; ++i) {
    data.push_back(engine.temporary(rows, 1, DType::float64));
    engine.submit(fill, {{data.back(), Access::write}}, there);
  }
  for (const Data& each : data) engine.submit(add, {{each, Access::update}}, there);
  for (const Data& each : data) engine.submit(gather, {{each, Access::read}}, there);
  engine.wait(60);
  EXPECT_EQ(sum, 2.0 * rows * tiles);
  EXPECT_GT(engine.counters().spill_bytes, (tiles - 2 * tiles_of_device) * tile_bytes);
  return static_cast<double>(engine.counters().elapsed) * 1e-9;
}

TEST(HostNodesTest, BuffersAreNearTheDeviceThatTheyAreFor) {
  const double near = run(machine_of(tiles, tiles), true);
  const double far = run(machine_of(tiles, 0), true);
  const double some = run(machine_of(tiles, tiles / 2), true);
  Machine one_node = machine_of(tiles, tiles);
  one_node.nodes.pop_back();
  EXPECT_EQ(near, run(std::move(one_node), true)) << "as on a host without far nodes";
  EXPECT_GT(far, 5 * near);
  EXPECT_GT(some, 1.5 * near);
  EXPECT_LT(some, 0.8 * far) << "half of them are near";
}

TEST(HostNodesTest, ResultsAreTheSameByTheRealClock) {
  run(machine_of(tiles, tiles / 4), false);
  run(machine_of(0, 0), false);
}

}  // namespace
}  // namespace quadriga
