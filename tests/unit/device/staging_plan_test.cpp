// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/staging_plan_test.cpp: which devices share threads, and where these run.
#include "device/staging_plan.h"

#include <gtest/gtest.h>

namespace quadriga {
namespace {

Machine machine_of(std::vector<int> nodes_of_gpus) {
  Machine machine = Machine::host();
  for (const int node : nodes_of_gpus) {
    Device gpu;
    gpu.kind = DeviceKind::cuda;
    gpu.space = static_cast<SpaceId>(machine.devices.size());
    gpu.node = node;
    machine.devices.push_back(gpu);
  }
  machine.nodes = {{0, 0, 2, {0, 1}}, {1, 0, 30, {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}}};
  return machine;
}

TEST(StagingPlan, DevicesOfANodeShareItsCores) {
  const auto groups = plan_staging(machine_of({0, 1, 0}), 64);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].devices, (std::vector<DeviceId>{1, 3}));
  EXPECT_EQ(groups[0].processors, (std::vector<int>{0, 1}));
  EXPECT_EQ(groups[0].threads, 2);
  EXPECT_EQ(groups[1].devices, (std::vector<DeviceId>{2}));
  EXPECT_EQ(groups[1].threads, 10);
}

TEST(StagingPlan, WhereANodeIsUnknownAllShareOneGroup) {
  for (const int node : {-1, 7}) {
    const auto groups = plan_staging(machine_of({0, node}), 64);
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0].devices, (std::vector<DeviceId>{1, 2}));
    EXPECT_TRUE(groups[0].processors.empty());
    EXPECT_EQ(groups[0].threads, 20);
  }
}

TEST(StagingPlan, OneNodeBindsNothing) {
  Machine machine = machine_of({0, 0});
  machine.nodes.pop_back();
  const auto groups = plan_staging(machine, 4);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(groups[0].processors.empty());
  EXPECT_EQ(groups[0].threads, 4);
}

TEST(StagingPlan, ThereIsAlwaysAGroup) {
  const auto groups = plan_staging(Machine::host(), 4);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(groups[0].devices.empty());
  EXPECT_EQ(groups[0].threads, 1);
}

}  // namespace
}  // namespace quadriga
