// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/team.cpp: devices of a machine, and the rate at which the host feeds all of them.
#include "linalg/team.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace quadriga::linalg {
namespace {

/// A copy from a space shares each link of its way with all devices whose ways cross it. Where no
/// way leads from one device to another, nothing is known to be slower than the way from the host;
/// and links that don't tell what short runs reach are taken to lose what those of the host lose.
void set_feed(Team& team, const Machine& machine, SpaceId from = host_space) {
  team.home = from;
  const std::vector<DeviceId>& devices = team.devices;
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
  team.seconds_a_byte = 0;
  for (const DeviceId device : devices)
    each_link(device, [&](std::size_t index) {
      const Link& link = machine.links[index];
      team.seconds_a_byte = std::max(team.seconds_a_byte, crossings[index] / link.bytes_per_second);
      if (link.runs.empty()) return;
      if (!slowed || link.bytes_per_second < slowed->bytes_per_second) slowed = &link;
    });
  if (slowed) team.slowed_by_runs = slowed;
}

/// How many places each device has: as it computes products, rounded, and few.
std::vector<DeviceId> places_of(const Machine& machine, const std::vector<DeviceId>& devices) {
  constexpr double order = 2048;
  constexpr int most = 4;
  std::vector<double> seconds;
  for (const DeviceId device : devices) {
    const Device& where = machine.devices[device];
    for (const char* const kernel : {"dgemm", "sgemm"}) {
      if (!machine.has_kernel(where, kernel)) continue;
      seconds.push_back(machine.kernel_seconds(where, kernel, order, order * order * order));
      break;
    }
  }
  if (seconds.size() < devices.size() || seconds.empty()) return devices;
  const double slowest = *std::ranges::max_element(seconds);
  std::vector<DeviceId> places;
  for (int round = 0; round < most; ++round)
    for (std::size_t i = 0; i < devices.size(); ++i)
      if (round < std::lround(slowest / seconds[i])) places.push_back(devices[i]);
  return places;
}

/// Of the first accelerators, so many at most.
Team team_of_first(const Machine& machine, std::int64_t most) {
  Team team;
  for (std::size_t d = 0; d < machine.devices.size() && team.size() < most; ++d) {
    const Device& device = machine.devices[d];
    if (device.space == host_space) continue;
    team.memory_bytes = team.devices.empty() ? device.memory_bytes
                                             : std::min(team.memory_bytes, device.memory_bytes);
    team.devices.push_back(static_cast<DeviceId>(d));
  }
  team.places = places_of(machine, team.devices);
  set_feed(team, machine);
  return team;
}

}  // namespace

std::int64_t Team::tiles(std::size_t tile_bytes) const noexcept {
  constexpr std::size_t alignment = 256;
  const std::size_t rounded =
      (std::max<std::size_t>(tile_bytes, 1) + alignment - 1) / alignment * alignment;
  return static_cast<std::int64_t>(memory_bytes / rounded);
}

Team team_of(const Engine& engine) {
  return team_of_first(engine.machine(), std::numeric_limits<std::int64_t>::max());
}

Team first_of(const Engine& engine, const Team& team) {
  return team.size() < 2 ? team : team_of_first(engine.machine(), 1);
}

Team team_at(DeviceId device) {
  Team team;
  team.devices = team.places = {device};
  team.memory_bytes = SIZE_MAX / 2;  // what lies there already takes none of the arena
  team.resident = true;
  return team;
}

Team fed_from(const Engine& engine, Team team, DeviceId device) {
  const Machine& machine = engine.machine();
  set_feed(team, machine, machine.devices[device].space);
  return team;
}

double kernel_seconds(const Engine& engine, const Team& team, std::string_view kernel, double order,
                      double volume) {
  const Machine& machine = engine.machine();
  if (team.devices.empty()) return volume * 1e-10;
  const Device& device = machine.devices[team.devices.front()];
  constexpr double guessed_rate = 1e10;  // multiplications a second
  if (!machine.has_kernel(device, kernel)) return volume / guessed_rate;
  return machine.kernel_seconds(device, kernel, order, volume);
}

}  // namespace quadriga::linalg
