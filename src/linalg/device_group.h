// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/device_group.h: the devices that share a call, and what orders need to know of them.
#pragma once

#include <quadriga/engine.h>

#include <vector>

namespace quadriga::linalg {

struct DeviceGroup {
  std::vector<DeviceId> devices;  ///< Accelerators if there are any; none: the host's cores alone.
  /// The devices again, faster ones several times, for maps that give each place as much work.
  std::vector<DeviceId> places;
  std::size_t memory_bytes = 0;  ///< Of the device with the least.
  /// Seconds to bring a byte from the host to a device while all others do so too.
  double seconds_a_byte = 0;
  /// The slowest link on these ways that tells what short runs reach of it; null: none does.
  const Link* slowed_by_runs = nullptr;
  SpaceId home = host_space;  ///< Where operands come from.
  bool resident = false;      ///< Operands are in its only device's memory, and take no other room.
  std::int64_t granule = 1;   ///< Kernels are fastest on tiles whose lengths are multiples of it.

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(devices.size()); }
  /// A tile's length as a multiple of the granule, rounded up or down.
  std::int64_t whole(std::int64_t length) const noexcept {
    return (length + granule - 1) / granule * granule;
  }
  std::int64_t whole_below(std::int64_t length) const noexcept {
    return length / granule * granule;
  }
  /// Of the tiles that plans try: shorter ones leave most of a device idle.
  std::int64_t shortest_tile() const noexcept { return 2 * granule; }
  /// What a copy by runs of so many bytes reaches of that rate.
  double share_by_runs(double run_bytes) const noexcept {
    return slowed_by_runs ? slowed_by_runs->share(run_bytes) : 1;
  }
  /// Tiles of so many bytes that fit a device.
  std::int64_t tiles(std::size_t tile_bytes) const noexcept;
  /// The owner for a place in the group; no_device without accelerators.
  DeviceId device(std::int64_t place) const noexcept {
    return devices.empty() ? no_device : devices[static_cast<std::size_t>(place)];
  }
  /// The same among places.
  DeviceId owner(std::int64_t place) const noexcept {
    return places.empty() ? no_device : places[static_cast<std::size_t>(place)];
  }
};

DeviceGroup group_of(const Machine& machine);
DeviceGroup group_of(const Engine& engine);
/// Its first device alone, as a group that has the machine to itself.
DeviceGroup first_of(const Engine& engine, const DeviceGroup& group);
/// The device alone, for matrices that lie in its memory.
DeviceGroup group_at(const Engine& engine, DeviceId device);
/// The same group, for matrices that come from a device's memory instead of the host's.
DeviceGroup fed_from(const Engine& engine, DeviceGroup group, DeviceId device);

/// Seconds of a multiplication in large products, to compare devices by; 0: the table doesn't tell.
double seconds_of_products(const Machine& machine, DeviceId device, std::string_view kernel);

/// Seconds of a kernel on a device of the group by the machine's table, else by a guess.
double kernel_seconds(const Engine& engine, const DeviceGroup& group, std::string_view kernel,
                      double order, double volume);

}  // namespace quadriga::linalg
