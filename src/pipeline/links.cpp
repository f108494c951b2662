// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/links.cpp: routes of heads and tails, and how many copies fill a link.
#include "pipeline/links.h"

#include <quadriga/error.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "schedule/variants.h"

namespace quadriga {
namespace {

/// Each link that a copy crosses, once.
std::vector<int> links_of(const Machine& machine, SpaceId from, SpaceId to) {
  const Route* const route = machine.route(from, to);
  if (!route) return {};
  std::vector<int> links = route->links;
  std::ranges::sort(links);
  const auto repeated = std::ranges::unique(links);
  links.erase(repeated.begin(), repeated.end());
  return links;
}

}  // namespace

namespace {

[[noreturn]] void fail_without_device(const Machine& machine, const std::vector<Stage>& stages) {
  std::string devices;
  for (const Device& device : machine.devices)
    devices += (devices.empty() ? "" : ", ") + device.name;
  for (const Stage& stage : stages) {
    const auto runs = [&](const Device& device) { return offers(machine, device, *stage.codelet); };
    if (stage.kind == StageKind::kernel && std::ranges::none_of(machine.devices, runs))
      fail(Errc::unavailable,
           "kernel '" + stage.name + "' has a variant for none of the devices (" + devices + ")");
  }
  fail(Errc::unavailable, "none of the devices (" + devices +
                              ") has a variant of each kernel of the pipeline, and a chunk passes "
                              "all of them on one device");
}

}  // namespace

std::vector<DeviceId> usable_devices(const Machine& machine, const std::vector<Stage>& stages) {
  std::vector<DeviceId> accelerators;
  std::vector<DeviceId> hosts;
  for (DeviceId id = 0; id < machine.devices.size(); ++id) {
    const Device& device = machine.devices[id];
    const bool runs = std::ranges::all_of(stages, [&](const Stage& stage) {
      return stage.kind != StageKind::kernel || offers(machine, device, *stage.codelet);
    });
    if (runs) (device.space == host_space ? hosts : accelerators).push_back(id);
  }
  if (accelerators.empty() && hosts.empty()) fail_without_device(machine, stages);
  return accelerators.empty() ? hosts : accelerators;
}

StreamMachine stream_machine(const Machine& machine, std::span<const DeviceId> devices) {
  StreamMachine found;
  std::vector<double> fastest(machine.links.size(), 0.0);  // of the copies that cross a link
  for (const DeviceId id : devices) {
    const Device& device = machine.devices[id];
    StreamDevice made;
    if (device.space == host_space) {
      made.most_chunks = std::max(1, device.cores) + 1;
    } else {
      made.links_in = links_of(machine, host_space, device.space);
      made.links_out = links_of(machine, device.space, host_space);
      made.memory_bytes = device.memory_bytes;
      made.copy_engines = std::max(1, device.copy_engines);
    }
    for (const auto* const route :
         {machine.route(host_space, device.space), machine.route(device.space, host_space)}) {
      if (!route || device.space == host_space) continue;
      const double rate = machine.copy_rate(*route, 1e18);
      for (const int link : route->links)
        fastest[static_cast<std::size_t>(link)] =
            std::max(fastest[static_cast<std::size_t>(link)], rate);
    }
    found.ids.push_back(id);
    found.devices.push_back(std::move(made));
  }
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    const double copies = fastest[i] > 0 ? machine.links[i].bytes_per_second / fastest[i] : 1;
    constexpr double tolerance = 1e-6;  // a link that two copies fill all but exactly
    found.links.push_back(std::max(1, static_cast<int>(std::ceil(copies - tolerance))));
  }
  return found;
}

}  // namespace quadriga
