// SPDX-License-Identifier: BSD-3-Clause
// src/engine/device_spaces.cpp: as much memory as a device gives, and its streams for copies.
#include "engine/device_spaces.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/units.h"
#include "device/kinds.h"

namespace quadriga {

namespace {

constexpr std::size_t least = 4096;
// Several times what CUDA's linear algebra takes of a device for handles and workspaces of all of
// its streams. Where so much is left, nobody has to find out how much that is.
constexpr std::size_t plenty = std::size_t{2} << 30;

// Up to four reserves, a 32nd of an arena together, but each with room for a library's workspace
// (cuBLAS asks for 32 MiB): of a small arena fewer, a 16th of it at most.
struct Reserves {
  std::size_t count = 0;
  std::size_t bytes = 0;  // Of each.
};

Reserves reserves_of(std::size_t arena_bytes) {
  constexpr std::size_t most = 4;
  constexpr std::size_t workspace = std::size_t{32} << 20;
  const std::size_t bytes = std::max(workspace, std::bit_floor(arena_bytes / 32 / most));
  return {std::min(most, arena_bytes / 16 / bytes), bytes};
}

std::string bytes_in_words(std::size_t bytes) { return format_bytes(static_cast<double>(bytes)); }

}  // namespace

DeviceSpaces::DeviceSpaces(Backend& backend, const Machine& machine)
    : backend_(backend),
      spaces_(static_cast<std::size_t>(machine.spaces())),
      reserves_(spaces_.size()) {
  for (DeviceId device = 0; device < machine.devices.size(); ++device)
    if (machine.devices[device].space != host_space) open(machine, device);
}

DeviceSpaces::~DeviceSpaces() {
  for (SpaceId space = 0; space < spaces_.size(); ++space) free_memory(space);
}

void DeviceSpaces::free_memory(SpaceId id) noexcept {
  SpaceResources& space = spaces_[id];
  if (space.base) backend_.deallocate(space.device, std::exchange(space.base, nullptr));
  const std::lock_guard lock(mutex_);
  for (const Reserve& reserve : reserves_[id]) backend_.deallocate(space.device, reserve.base);
  reserves_[id].clear();
}

std::size_t DeviceSpaces::give_reserve(SpaceId space) {
  const std::lock_guard lock(mutex_);
  if (!gives_ || reserves_[space].empty()) return 0;
  const Reserve given = reserves_[space].back();
  reserves_[space].pop_back();
  backend_.deallocate(spaces_[space].device, given.base);
  return given.bytes;
}

std::size_t DeviceSpaces::reserve_bytes(SpaceId space) const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const Reserve& reserve : reserves_[space]) bytes += reserve.bytes;
  return bytes;
}

void DeviceSpaces::keep_reserves() {
  const std::lock_guard lock(mutex_);
  gives_ = false;
}

void DeviceSpaces::open(const Machine& machine, DeviceId device) {
  const Device& described = machine.devices[device];
  SpaceResources& space = spaces_[described.space];
  space.device = device;
  space.is_file = properties_of(described.kind).only_stores;
  space.node = described.node;
  if (described.memory_bytes < least) {
    const std::optional<std::size_t> free = backend_.free_bytes(device);
    fail(Errc::invalid_argument,
         fmt::format("device '{}' has a memory of {} bytes; at least {} are needed{}",
                     described.name, described.memory_bytes, least,
                     free ? fmt::format(" ({} free)", bytes_in_words(*free)) : ""));
  }
  space.in = backend_.create_stream(device, StreamKind::copy_in);
  space.out = backend_.create_stream(device, StreamKind::copy_out);
  space.peers.resize(spaces_.size());
  for (SpaceId from = 1; from < spaces_.size(); ++from)
    if (machine.route(from, described.space))
      space.peers[from] = backend_.create_stream(device, StreamKind::peer_in);
}

void DeviceSpaces::take_memory(const Machine& machine) {
  for (DeviceId device = 0; device < machine.devices.size(); ++device)
    if (machine.devices[device].space != host_space) take_memory(machine.devices[device], device);
}

bool DeviceSpaces::is_scarce(const Device& described, std::optional<std::size_t> free) {
  return free && (*free < described.memory_bytes || *free - described.memory_bytes < plenty);
}

bool DeviceSpaces::is_scarce(const Machine& machine, DeviceId device) const {
  const Device& described = machine.devices[device];
  return described.space != host_space && is_scarce(described, backend_.free_bytes(device));
}

/// All of it or nothing.
bool DeviceSpaces::try_take(SpaceId id, std::size_t bytes, bool has_reserves) {
  SpaceResources& space = spaces_[id];
  const Reserves wanted = has_reserves ? reserves_of(bytes) : Reserves{};
  space.bytes = bytes - wanted.count * wanted.bytes;
  space.base = backend_.allocate(space.device, space.bytes);
  if (!space.base) return false;
  for (std::size_t i = 0; i < wanted.count; ++i) {
    std::byte* const base = backend_.allocate(space.device, wanted.bytes);
    if (!base) {
      free_memory(id);
      return false;
    }
    const std::lock_guard lock(mutex_);
    reserves_[id].push_back({base, wanted.bytes});
  }
  return true;
}

// Libraries load kernels when these are first called, and need some of what is left for them.
void DeviceSpaces::take_memory(const Device& described, DeviceId device) {
  SpaceResources& space = spaces_[described.space];
  const std::optional<std::size_t> free = backend_.free_bytes(device);
  space.bytes = described.memory_bytes;
  if (is_scarce(described, free))
    space.bytes = std::min(space.bytes, *free - std::min(*free / 8, plenty / 2));
  const std::size_t wanted = space.bytes;
  std::size_t bytes = wanted;
  // Where an arena leaves more than it takes, libraries don't run short for its sake.
  const auto take = [&] {
    while (bytes >= least && !try_take(described.space, bytes, free && *free / 2 < bytes))
      bytes = bytes / 8 * 7;
  };
  take();
  if (space.base && bytes < wanted) {
    free_memory(described.space);
    bytes = std::max(bytes / 8 * 7, least);
    take();
  }
  if (space.base) return;
  fail(Errc::unavailable, fmt::format("device '{}' has no memory to give: {} wanted{}",
                                      described.name, bytes_in_words(described.memory_bytes),
                                      free ? fmt::format(", {} free", bytes_in_words(*free)) : ""));
}

}  // namespace quadriga
