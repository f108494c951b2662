// SPDX-License-Identifier: BSD-3-Clause
// src/device/joined/part.cpp: cuts a machine into parts.
#include "device/joined/part.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>

namespace quadriga {
namespace {

MachinePart part_of(const Machine& whole, DeviceKind kind) {
  MachinePart part;
  part.machine = whole;
  part.machine.devices.clear();
  part.machine.routes.clear();
  part.spaces.assign(static_cast<std::size_t>(whole.spaces()), no_space);
  part.spaces[host_space] = host_space;
  SpaceId next = 1;
  for (DeviceId id = 0; id < whole.devices.size(); ++id) {
    Device device = whole.devices[id];
    if (device.kind != kind) continue;
    part.devices.push_back(id);
    if (device.space != host_space) {
      if (part.spaces[device.space] == no_space) part.spaces[device.space] = next++;
      device.space = part.spaces[device.space];
    }
    part.machine.devices.push_back(std::move(device));
  }
  for (Route route : whole.routes) {
    route.from = part.spaces[route.from];
    route.to = part.spaces[route.to];
    if (route.from != no_space && route.to != no_space) part.machine.routes.push_back(route);
  }
  return part;
}

}  // namespace

std::vector<MachinePart> parts_by_kind(const Machine& machine) {
  std::vector<MachinePart> parts;
  for (const Device& device : machine.devices) {
    const auto is_there = [&](const MachinePart& part) {
      return part.machine.devices.front().kind == device.kind;
    };
    if (!std::ranges::any_of(parts, is_there)) parts.push_back(part_of(machine, device.kind));
  }
  for (const Route& route : machine.routes) {
    const auto has_both = [&](const MachinePart& part) {
      return part.spaces[route.from] != no_space && part.spaces[route.to] != no_space;
    };
    if (std::ranges::any_of(parts, has_both)) continue;
    fail(Errc::unavailable,
         fmt::format("a route of machine '{}' leads from space {} to {}, of devices of two kinds: "
                     "leave it out, and such copies go by way of the host",
                     machine.name, route.from, route.to));
  }
  return parts;
}

}  // namespace quadriga
