// SPDX-License-Identifier: BSD-3-Clause
// src/device/queueing.h: queues operations on the streams of devices once they can be queued.
//
// Invariants
//   1. A thread queues on a device's streams while it holds the device's mutex: the issuer in
//      add(), any thread in with(), the driver in look(). The driver only tries the mutex: it never
//      waits for a thread that queues, and no thread waits for another device.
//   2. A device's mutex guards its parking. `parked` says whether that isn't empty; it is written
//      under the mutex.
//   3. A thread that has queued an operation checks whether parked ones of its device can follow;
//      the driver checks all devices.
#pragma once

#include <quadriga/types.h>

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>

#include "device/parking.h"

namespace quadriga {

class Queueing {
 public:
  using CanQueue = std::function<bool(StreamId, const Operation&)>;
  using Queue = std::function<void(StreamId, const Operation&)>;

  /// As Parking; both are called by the thread that has the mutex of the stream's device.
  Queueing(std::size_t devices, const CanQueue& can_queue, const Queue& queue) {
    for (std::size_t i = 0; i < devices; ++i) devices_.emplace_back(can_queue, queue);
  }

  /// Queues an operation of a device's stream, or parks it.
  void add(DeviceId device, StreamId stream, const Operation& operation) {
    with(device, [&](Parking& parking) { parking.add(stream, operation); });
  }
  /// Calls a function of a device's parking, then queues what can be queued by now.
  template <class Call>
  void with(DeviceId device, Call&& call) {
    Device& here = devices_[device];
    const std::lock_guard lock(here.mutex);
    call(here.parking);
    if (!here.parking.empty()) here.parking.look();
    here.parked = !here.parking.empty();
  }
  /// By who queues on the device: as Parking.
  void hold(DeviceId device, StreamId stream) { devices_[device].parking.hold(stream); }
  bool has_parked(DeviceId device) const noexcept { return devices_[device].parked; }
  /// By the driver: queues what can be queued by now on any device. True if it has to look again
  /// soon, because somebody was queueing.
  bool look() {
    bool busy = false;
    for (bool moved = true; moved;) {
      moved = busy = false;
      for (Device& each : devices_) {
        if (!each.parked) continue;
        const std::unique_lock lock(each.mutex, std::try_to_lock);
        busy |= !lock.owns_lock();
        if (!lock.owns_lock() || !each.parking.look()) continue;
        each.parked = !each.parking.empty();
        moved = true;
      }
    }
    return busy;
  }

 private:
  struct Device {
    Device(const CanQueue& can_queue, const Queue& queue) : parking(can_queue, queue) {}
    std::mutex mutex;
    Parking parking;
    std::atomic<bool> parked{false};
  };
  std::deque<Device> devices_;
};

}  // namespace quadriga
