// SPDX-License-Identifier: BSD-3-Clause
// src/engine/driver_devices.h: the services of the devices that a driver drives.
//
// Invariants
//   1. Nothing here touches the scheduler or waits for the driver's thread: a library may ask for
//      memory while that thread calls it, or waits for whom it calls.
//   2. A reserve is given away once; who is given one finds it free.
#pragma once

#include "engine/device_services.h"
#include "engine/device_spaces.h"
#include "engine/schedule_news.h"
#include "engine/waiters.h"

namespace quadriga {

class DriverDevices final : public DeviceServices {
 public:
  /// All must outlive it.
  DriverDevices(Backend& backend, const Machine& machine, DeviceSpaces& spaces,
                const ScheduleNews& news, Waiters& waiters)
      : backend_(backend), machine_(machine), spaces_(spaces), news_(news), waiters_(waiters) {}

  bool is_lost(DeviceId device) const override { return news_.is_lost(device); }
  std::size_t memory_bytes(DeviceId device) const override {
    return spaces_.spaces()[machine_.devices[device].space].bytes;
  }
  std::size_t reserve_bytes(DeviceId device) const override {
    return spaces_.reserve_bytes(machine_.devices[device].space);
  }
  DeviceId holder(const void* memory) const override { return backend_.holder(memory); }
  void synchronize(DeviceId device, std::uintptr_t stream) const override {
    backend_.synchronize(device, stream);
  }
  std::unique_ptr<ForeignEvent> mark(DeviceId device, std::uintptr_t stream) const override {
    return backend_.mark(device, stream);
  }
  bool pin(std::byte* memory, std::size_t bytes) override { return backend_.pin(memory, bytes); }
  void unpin(std::byte* memory, std::size_t bytes) noexcept override {
    backend_.unpin(memory, bytes);
  }
  /// For a library that found no memory on a device: frees a reserve there, and says so. False if
  /// there is none to give.
  bool make_room(DeviceId device);

 private:
  Backend& backend_;
  const Machine& machine_;
  DeviceSpaces& spaces_;
  const ScheduleNews& news_;
  Waiters& waiters_;
};

}  // namespace quadriga
