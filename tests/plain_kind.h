// SPDX-License-Identifier: BSD-3-Clause
// tests/plain_kind.h: two kinds of devices in a backend that nobody knew, whose memory the host
// reaches and which run variants of `cpu`: one whose row says so, and one whose row doesn't.
#pragma once

#include <quadriga/machine.h>

#include <memory>
#include <string>

#include "device/factory.h"
#include "device/kinds.h"
#include "polled_backend.h"

namespace quadriga {

/// Two devices of a kind on this computer, joined by way of the host.
inline Machine discover_polled(const std::string& kind, std::size_t memory_bytes) {
  Machine machine;
  machine.name = kind;
  machine.links.push_back({"bus", 1e9, 0});
  for (SpaceId space = 1; space <= 2; ++space) {
    Device device;
    device.name = kind + std::to_string(space - 1);
    device.kind = device_kind(kind);
    device.space = space;
    device.memory_bytes = memory_bytes;
    machine.devices.push_back(device);
    machine.routes.push_back({host_space, space, {0}});
    machine.routes.push_back({space, host_space, {0}});
  }
  return machine;
}

/// Adds such a kind, if it isn't there.
inline DeviceKind polled_kind(const std::string& name, std::size_t memory_bytes,
                              KindProperties properties = {}, std::optional<DeviceKind> runs = {}) {
  if (const KindOfDevice* const known = find_kind(name)) return known->kind;
  return add_kind(
      {.name = name,
       .runs = runs,
       .properties = properties,
       .discover = [=] { return discover_polled(name, memory_bytes); },
       .absence = [] { return "used by those who name it"; },
       .make = [](const Machine& machine, const BackendOptions&) -> std::unique_ptr<Backend> {
         return std::make_unique<PolledBackend>(machine);
       }});
}

/// "plain": its row states what its memory allows.
inline DeviceKind plain_kind() {
  return polled_kind("plain", std::size_t{1} << 20,
                     {.host_reaches_memory = true, .messages = MessageMemory::of_machine},
                     DeviceKind::cpu);
}

/// "unstated": the same devices, of which the row states nothing.
inline DeviceKind unstated_kind() {
  return polled_kind("unstated", std::size_t{1} << 20, {}, DeviceKind::cpu);
}

}  // namespace quadriga
