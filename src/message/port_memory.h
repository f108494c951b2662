// SPDX-License-Identifier: BSD-3-Clause
// src/message/port_memory.h: memory of a port's devices: what is made, kept for collectives, and
// shared with other processes.
//
// Invariants
//   1. `mutex_` guards `rooms_`, and is held while the backend makes, frees, exports or opens
//      memory: freeing may wait for the whole device (cudaFree), and messages move on meanwhile. So
//      nobody who holds it queues operations or waits for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "device/backend.h"
#include "message/device_rooms.h"
#include "message/port_operations.h"

namespace quadriga::message {

class PortMemory {
 public:
  /// `operations` are those that may use the memory.
  PortMemory(Backend& backend, PortOperations& operations) noexcept
      : backend_(backend), operations_(operations) {}

  /// no_device: it isn't these devices' memory. Errors: invalid_argument if it is another's.
  DeviceId holder(const void* memory) const { return backend_.holder(memory); }
  /// Null if there is none.
  std::byte* allocate(DeviceId device, std::size_t bytes);
  /// Waits for what the lanes hold.
  void deallocate(DeviceId device, std::byte* memory) noexcept;

  /// As the backend's functions of these names.
  MemoryExport export_memory(DeviceId device, const void* memory);
  std::uint64_t allocation_at(DeviceId device, const void* memory);
  std::byte* import_memory(DeviceId device, const MemoryHandle& handle, int descriptor);
  void close_memory(DeviceId device, std::byte* mapped) noexcept;

  /// Memory of a device of any size, which is kept for the next that needs as much: making it is
  /// dear, and so is opening it for the peers. Null if there is none.
  std::byte* take_room(DeviceId device, std::size_t bytes);
  /// What is kept is an eighth of the device's memory at most, or this one room.
  void give_room(DeviceId device, std::byte* room, std::size_t bytes) noexcept;
  /// Bytes that are kept.
  std::size_t room_bytes(DeviceId device);

 private:
  std::byte* make(DeviceId device, std::size_t bytes);
  bool free_rooms(DeviceId device) noexcept;
  DeviceRooms& rooms(DeviceId device);

  Backend& backend_;
  PortOperations& operations_;
  std::mutex mutex_;
  std::map<DeviceId, DeviceRooms> rooms_;
};

}  // namespace quadriga::message
