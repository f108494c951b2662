// SPDX-License-Identifier: BSD-3-Clause
// src/device/staging_plan.cpp: groups of devices by NUMA node.
#include "device/staging_plan.h"

#include <algorithm>

#include "device/kinds.h"

namespace quadriga {
namespace {

const Node* node_of(const Machine& machine, const Device& device) {
  const auto found = std::ranges::find(machine.nodes, device.node, &Node::index);
  return found == machine.nodes.end() || found->processors.empty() ? nullptr : &*found;
}

// A thread moves 10 GB/s or so, and each device takes 55 GB/s both ways.
int threads_for(const StagingGroup& group, int cores) {
  constexpr int most_for_a_device = 10;
  const int wanted = most_for_a_device * static_cast<int>(group.devices.size());
  const int near = static_cast<int>(group.processors.size());
  return std::max(1, std::min({wanted, cores, near > 0 ? near : cores}));
}

}  // namespace

std::vector<StagingGroup> plan_staging(const Machine& machine, int cores) {
  std::vector<StagingGroup> groups;
  StagingGroup all;
  bool known = machine.nodes.size() > 1;
  for (DeviceId id = 0; id < machine.devices.size(); ++id) {
    const Device& device = machine.devices[id];
    if (!is_accelerator(device.kind)) continue;
    all.devices.push_back(id);
    const Node* const node = node_of(machine, device);
    known = known && node != nullptr;
    if (!known) continue;
    auto group = std::ranges::find(groups, node->processors, &StagingGroup::processors);
    if (group == groups.end()) group = groups.insert(group, StagingGroup{{}, node->processors});
    group->devices.push_back(id);
  }
  if (!known) groups = {all};
  for (StagingGroup& group : groups) group.threads = threads_for(group, cores);
  return groups;
}

}  // namespace quadriga
