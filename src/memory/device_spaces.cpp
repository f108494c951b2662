// SPDX-License-Identifier: BSD-3-Clause
// src/memory/device_spaces.cpp: as much memory as a device gives, and its streams for copies.
#include "memory/device_spaces.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/units.h"

namespace quadriga {

namespace {

constexpr std::size_t least = 4096;
// Several times what CUDA's linear algebra takes of a device for handles and workspaces of all of
// its streams. Where so much is left, nobody has to find out how much that is.
constexpr std::size_t plenty = std::size_t{2} << 30;

// Two sixteenths of an arena can be given back, each where a library's workspace fits (cuBLAS asks
// for 32 MiB). A power of two, as tiles mostly are, so that little of it is lost to fragments.
constexpr std::size_t reserves = 2;
constexpr std::size_t least_reserve = std::size_t{32} << 20;

std::size_t reserve_bytes(std::size_t arena_bytes) {
  const std::size_t bytes = std::bit_floor(arena_bytes / 16);
  return bytes < least_reserve ? 0 : bytes;
}

std::string in_words(std::size_t bytes) { return format_bytes(static_cast<double>(bytes)); }

}  // namespace

DeviceSpaces::DeviceSpaces(Backend& backend, const Machine& machine)
    : backend_(backend), spaces_(static_cast<std::size_t>(machine.spaces())) {
  for (DeviceId device = 0; device < machine.devices.size(); ++device)
    if (machine.devices[device].space != host_space) open(machine, device);
}

DeviceSpaces::~DeviceSpaces() {
  for (SpaceResources& space : spaces_) free_memory(space);
}

void DeviceSpaces::free_memory(SpaceResources& space) noexcept {
  if (space.base) backend_.deallocate(space.device, std::exchange(space.base, nullptr));
  for (const Reserve& reserve : space.reserves) backend_.deallocate(space.device, reserve.base);
  space.reserves.clear();
}

void DeviceSpaces::give_back(SpaceId space, std::byte* reserve) {
  SpaceResources& from = spaces_[space];
  std::erase_if(from.reserves, [reserve](const Reserve& each) { return each.base == reserve; });
  backend_.deallocate(from.device, reserve);
}

void DeviceSpaces::open(const Machine& machine, DeviceId device) {
  const Device& described = machine.devices[device];
  SpaceResources& space = spaces_[described.space];
  space.device = device;
  space.is_file = described.kind == DeviceKind::file;
  if (described.memory_bytes < least) {
    const std::optional<std::size_t> free = backend_.free_bytes(device);
    fail(Errc::invalid_argument,
         fmt::format("device '{}' has {} bytes of memory; it needs at least {}{}", described.name,
                     described.memory_bytes, least,
                     free ? fmt::format(" ({} free)", in_words(*free)) : ""));
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

/// All of it or nothing. Shared: libraries may want some of this memory later.
bool DeviceSpaces::try_take(SpaceResources& space, std::size_t bytes, bool is_shared) {
  const std::size_t reserved = is_shared ? reserve_bytes(bytes) : 0;
  space.bytes = bytes - reserves * reserved;
  space.base = backend_.allocate(space.device, space.bytes);
  if (!space.base) return false;
  while (reserved > 0 && space.reserves.size() < reserves) {
    std::byte* const base = backend_.allocate(space.device, reserved);
    if (!base) {
      free_memory(space);
      return false;
    }
    space.reserves.push_back({base, reserved});
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
  // Without reserves until nothing waits for them for ever (docs/decisions/0062).
  const auto take = [&] {
    while (bytes >= least && !try_take(space, bytes, false)) bytes = bytes / 8 * 7;
  };
  take();
  if (space.base && bytes < wanted) {
    free_memory(space);
    bytes = std::max(bytes / 8 * 7, least);
    take();
  }
  if (space.base) return;
  fail(Errc::unavailable, fmt::format("device '{}' has no memory to give: {} wanted{}",
                                      described.name, in_words(described.memory_bytes),
                                      free ? fmt::format(", {} free", in_words(*free)) : ""));
}

}  // namespace quadriga
