// SPDX-License-Identifier: BSD-3-Clause
// src/memory/device_spaces.cpp: as much memory as a device gives, and its streams for copies.
#include "memory/device_spaces.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <utility>

namespace quadriga {

DeviceSpaces::DeviceSpaces(Backend& backend, const Machine& machine)
    : backend_(backend), spaces_(static_cast<std::size_t>(machine.spaces())) {
  try {
    for (DeviceId device = 0; device < machine.devices.size(); ++device)
      if (machine.devices[device].space != host_space) open(machine, device);
  } catch (...) {
    close();
    throw;
  }
}

DeviceSpaces::~DeviceSpaces() { close(); }

void DeviceSpaces::close() noexcept {
  for (SpaceResources& space : spaces_)
    if (space.base) backend_.deallocate(space.device, std::exchange(space.base, nullptr));
}

void DeviceSpaces::open(const Machine& machine, DeviceId device) {
  const Device& described = machine.devices[device];
  SpaceResources& space = spaces_[described.space];
  space.device = device;
  space.bytes = described.memory_bytes;
  constexpr std::size_t least = 4096;
  require(space.bytes >= least,
          fmt::format("device '{}' has {} bytes of memory; it needs at least {}", described.name,
                      space.bytes, least));
  const auto take = [&] {
    while (space.bytes >= least && !(space.base = backend_.allocate(device, space.bytes)))
      space.bytes = space.bytes / 8 * 7;
  };
  take();
  if (space.base && space.bytes < described.memory_bytes) {
    // Libraries need some of what is left of a full device.
    backend_.deallocate(device, std::exchange(space.base, nullptr));
    space.bytes = std::max(space.bytes / 8 * 7, least);
    take();
  }
  if (!space.base)
    fail(Errc::unavailable, fmt::format("device '{}' has no memory to give (asked for {} bytes)",
                                        described.name, described.memory_bytes));
  space.in = backend_.create_stream(device, StreamKind::copy_in);
  space.out = backend_.create_stream(device, StreamKind::copy_out);
  space.peers.resize(spaces_.size());
  for (SpaceId from = 1; from < spaces_.size(); ++from)
    if (machine.route(from, described.space))
      space.peers[from] = backend_.create_stream(device, StreamKind::peer_in);
}

}  // namespace quadriga
