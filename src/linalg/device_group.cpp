// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/device_group.cpp: devices of a machine, and the rate at which the host feeds them all.
#include "linalg/device_group.h"

#include "device/kinds.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace quadriga::linalg {
namespace {

/// A copy from a space shares each link of its way with all devices whose ways cross it. Where no
/// way leads from one device to another, nothing is known to be slower than the way from the host;
/// and links that don't tell what short runs reach are taken to lose what those of the host lose.
void set_feed(DeviceGroup& group, const Machine& machine, SpaceId from = host_space) {
  group.home = from;
  const std::vector<DeviceId>& devices = group.devices;
  std::vector<double> crossings(machine.links.size(), 0);
  const auto each_link = [&](DeviceId device, auto&& visit) {
    const SpaceId to = machine.devices[device].space;
    if (to == from) return;
    const Route* route = machine.route(from, to);
    if (!route) route = machine.route(host_space, to);
    if (!route) return;
    for (const int link : route->links) visit(static_cast<std::size_t>(link));
  };
  for (const DeviceId device : devices)
    each_link(device, [&](std::size_t link) { crossings[link] += 1; });
  const Link* slowed = nullptr;
  group.seconds_a_byte = 0;
  for (const DeviceId device : devices)
    each_link(device, [&](std::size_t index) {
      const Link& link = machine.links[index];
      group.seconds_a_byte =
          std::max(group.seconds_a_byte, crossings[index] / link.bytes_per_second);
      if (link.runs.empty()) return;
      if (!slowed || link.bytes_per_second < slowed->bytes_per_second) slowed = &link;
    });
  if (slowed) group.slowed_by_runs = slowed;
}

/// How many places each device has: as it computes products, rounded, and few.
std::vector<DeviceId> places_of(const Machine& machine, const std::vector<DeviceId>& devices) {
  constexpr int most = 4;
  std::vector<double> seconds;
  for (const DeviceId device : devices) {
    const double by_double = seconds_of_products(machine, device, "dgemm");
    seconds.push_back(by_double > 0 ? by_double : seconds_of_products(machine, device, "sgemm"));
  }
  if (seconds.empty() || *std::ranges::min_element(seconds) <= 0) return devices;
  const double slowest = *std::ranges::max_element(seconds);
  std::vector<DeviceId> places;
  for (int round = 0; round < most; ++round)
    for (std::size_t i = 0; i < devices.size(); ++i)
      if (round < std::lround(slowest / seconds[i])) places.push_back(devices[i]);
  return places;
}

/// Of the first accelerators, so many at most.
DeviceGroup group_of_first(const Machine& machine, std::int64_t most) {
  DeviceGroup group;
  for (std::size_t d = 0; d < machine.devices.size() && group.size() < most; ++d) {
    const Device& device = machine.devices[d];
    if (device.space == host_space || !is_accelerator(device.kind)) continue;
    group.memory_bytes = group.devices.empty() ? device.memory_bytes
                                               : std::min(group.memory_bytes, device.memory_bytes);
    group.devices.push_back(static_cast<DeviceId>(d));
  }
  group.granule = machine.devices[group.devices.empty() ? 0 : group.devices.front()].granule;
  group.places = places_of(machine, group.devices);
  set_feed(group, machine);
  return group;
}

}  // namespace

std::int64_t DeviceGroup::tiles(std::size_t tile_bytes) const noexcept {
  constexpr std::size_t alignment = 256;
  const std::size_t rounded =
      (std::max<std::size_t>(tile_bytes, 1) + alignment - 1) / alignment * alignment;
  return static_cast<std::int64_t>(memory_bytes / rounded);
}

DeviceGroup group_of(const Machine& machine) {
  return group_of_first(machine, std::numeric_limits<std::int64_t>::max());
}

DeviceGroup group_of(const Engine& engine) { return group_of(engine.machine()); }

DeviceGroup first_of(const Engine& engine, const DeviceGroup& group) {
  return group.size() < 2 ? group : group_of_first(engine.machine(), 1);
}

DeviceGroup group_at(const Engine& engine, DeviceId device) {
  DeviceGroup group;
  group.granule = engine.machine().devices[device].granule;
  group.devices = group.places = {device};
  group.memory_bytes = SIZE_MAX / 2;  // what lies there already takes none of the arena
  group.resident = true;
  return group;
}

DeviceGroup fed_from(const Engine& engine, DeviceGroup group, DeviceId device) {
  const Machine& machine = engine.machine();
  set_feed(group, machine, machine.devices[device].space);
  return group;
}

double seconds_of_products(const Machine& machine, DeviceId device, std::string_view kernel) {
  constexpr double beyond_all_tables = 1e9;
  const Device& where = machine.devices[device];
  return machine.has_kernel(where, kernel)
             ? machine.kernel_seconds(where, kernel, beyond_all_tables, 1)
             : 0;
}

double kernel_seconds(const Engine& engine, const DeviceGroup& group, std::string_view kernel,
                      double order, double volume) {
  const Machine& machine = engine.machine();
  constexpr double guessed_rate = 1e10;  // multiplications a second; only ratios count then
  if (group.devices.empty()) return volume / guessed_rate;
  const Device& device = machine.devices[group.devices.front()];
  if (!machine.has_kernel(device, kernel)) return volume / guessed_rate;
  return machine.kernel_seconds(device, kernel, order, volume);
}

}  // namespace quadriga::linalg
