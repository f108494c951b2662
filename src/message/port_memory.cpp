// SPDX-License-Identifier: BSD-3-Clause
// src/message/port_memory.cpp: makes memory of devices, and lets go of what is kept if it is short.
#include "message/port_memory.h"

#include <quadriga/machine.h>

#include <bit>
#include <vector>

namespace quadriga::message {
namespace {

// Powers of 2, so that few sizes differ; of large ones eighths, so that little is lost.
std::size_t rounded(std::size_t bytes) {
  constexpr std::size_t large = std::size_t{64} << 20;
  if (bytes <= large) return std::bit_ceil(bytes);
  const std::size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

}  // namespace

// With the lock, as are all private functions. What is kept for collectives goes first.
std::byte* PortMemory::make(DeviceId device, std::size_t bytes) {
  std::byte* const made = backend_.allocate(device, bytes);
  return made || !free_rooms(device) ? made : backend_.allocate(device, bytes);
}

bool PortMemory::free_rooms(DeviceId device) noexcept {
  const std::vector<std::byte*> gone = rooms(device).clear();
  for (std::byte* const each : gone) backend_.deallocate(device, each);
  return !gone.empty();
}

DeviceRooms& PortMemory::rooms(DeviceId device) {
  constexpr std::size_t part = 8;
  return rooms_.try_emplace(device, backend_.machine().devices[device].memory_bytes / part)
      .first->second;
}

std::byte* PortMemory::allocate(DeviceId device, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return make(device, bytes);
}

void PortMemory::deallocate(DeviceId device, std::byte* memory) noexcept {
  operations_.finish_lanes();
  const std::lock_guard lock(mutex_);
  backend_.deallocate(device, memory);
}

MemoryExport PortMemory::export_memory(DeviceId device, const void* memory) {
  const std::lock_guard lock(mutex_);
  return backend_.export_memory(device, memory);
}

std::uint64_t PortMemory::allocation_at(DeviceId device, const void* memory) {
  const std::lock_guard lock(mutex_);
  return backend_.allocation_at(device, memory);
}

std::byte* PortMemory::import_memory(DeviceId device, const MemoryHandle& handle, int descriptor) {
  const std::lock_guard lock(mutex_);
  return backend_.import_memory(device, handle, descriptor);
}

void PortMemory::close_memory(DeviceId device, std::byte* mapped) noexcept {
  const std::lock_guard lock(mutex_);
  backend_.close_memory(device, mapped);
}

std::byte* PortMemory::take_room(DeviceId device, std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  std::byte* const room = rooms(device).take(size);
  return room ? room : make(device, size);
}

void PortMemory::give_room(DeviceId device, std::byte* room, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  for (std::byte* const each : rooms(device).give(room, rounded(bytes)))
    backend_.deallocate(device, each);
}

std::size_t PortMemory::room_bytes(DeviceId device) {
  const std::lock_guard lock(mutex_);
  return rooms(device).bytes();
}

}  // namespace quadriga::message
