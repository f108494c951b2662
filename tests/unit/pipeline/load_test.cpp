// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/load_test.cpp: what machines are to streams: links, and loads as resources.
#include "pipeline/load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "pipeline/links.h"

namespace quadriga {
namespace {

/// Devices on one bus of 1 GB/s, each by a link of its own of `own` bytes a second.
Machine machine_of(int devices, double own) {
  Machine machine;
  machine.links.push_back({"bus", 1e9});
  for (int i = 0; i < devices; ++i) {
    Device device;
    device.name = "gpu" + std::to_string(i);
    device.kind = DeviceKind::emulated;
    device.space = static_cast<SpaceId>(i + 1);
    device.memory_bytes = 1'000'000;
    machine.devices.push_back(device);
    machine.links.push_back({"own", own});
    machine.routes.push_back({host_space, device.space, {0, i + 1}});
    machine.routes.push_back({device.space, host_space, {i + 1, 0}});
  }
  return machine;
}

TEST(StreamMachine, ALinkTakesAsManyCopiesAsFillIt) {
  const std::vector<DeviceId> all{0, 1, 2};
  EXPECT_EQ(stream_machine(machine_of(3, 1e9), all).links, (std::vector<int>{1, 1, 1, 1}));
  EXPECT_EQ(stream_machine(machine_of(3, 0.4e9), all).links, (std::vector<int>{3, 1, 1, 1}));
  EXPECT_EQ(stream_machine(machine_of(3, 0.5e9), all).links, (std::vector<int>{2, 1, 1, 1}));
}

TEST(StreamLoad, HeadsThatShareALinkFollowOneAnother) {
  const Machine machine = machine_of(2, 1e9);
  StreamLoad load(machine, {0, 1});
  const std::vector<double> kernels{1.0, 1.0};
  load.add({2e8, 1e8, kernels});
  load.add({3e8, 1e8, kernels});
  load.add({4e8, 1e8, kernels});
  const std::vector<StreamResource> found = load.resources();
  // The first device's kernels wait for 0.2 s, the second's for 0.5 s; a tail takes 0.1 s.
  EXPECT_DOUBLE_EQ(found[0].seconds[0], 3);
  EXPECT_NEAR(found[0].idle, 0.2 + 0.1, 1e-9);
  EXPECT_NEAR(found[1].idle, 0.5 + 0.1, 1e-9);
  const auto bus = std::ranges::find(found, "link bus", &StreamResource::name);
  ASSERT_NE(bus, found.end());
  EXPECT_NEAR(bus->seconds[0], 1.2, 1e-9);  // in and out
}

}  // namespace
}  // namespace quadriga
