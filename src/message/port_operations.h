// SPDX-License-Identifier: BSD-3-Clause
// src/message/port_operations.h: what a port has queued on its devices, and what of it has ended.
//
// Invariants
//   1. `mutex_` guards all but what is const; it is held while operations are queued, and 1 ms at a
//      time while somebody waits for one of a lane.
//   2. Operations of a stream end in order: a ticket has ended once its stream has come so far.
//   3. Nothing that is queued waits for another process: every operation ends by itself, or by a
//      fault, which its ticket tells. But what a stream outside the lanes calls runs for as long as
//      it likes; and in the lane that is NCCL's, NCCL queues what waits for other ranks' (nccl/
//      collectives.h): no other lane waits for that one.
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/backend.h"

namespace quadriga::message {

/// An operation of a port; ticket 0 has ended.
using PortTicket = Event;

/// A port's own streams of a device: each copies in one direction, and packs; one is NCCL's.
enum class PortLane : std::uint8_t { in, out, across, nccl };

class PortOperations {
 public:
  /// The backend is gone before this is: it calls kernels that are kept here.
  explicit PortOperations(Backend& backend) noexcept : backend_(backend) {}

  PortTicket copy(DeviceId device, PortLane lane, const Copy& copy);
  PortTicket launch(DeviceId device, PortLane lane, Kernel variant);
  /// Calls what makes what a library needs, or queues it itself, on the device and with the stream
  /// of a lane.
  void prepare(DeviceId device, PortLane lane, const Kernel& variant);
  /// Whether it has ended. Errors: what ended it, told once.
  bool has_ended(PortTicket ticket);
  /// Waits for it; errors are ignored.
  void finish(PortTicket ticket) noexcept;
  /// Waits for what all lanes hold.
  void finish_lanes() noexcept;

  /// A stream beside the lanes.
  StreamId open(DeviceId device);
  /// Queues there what may wait for as long as it likes.
  PortTicket call(StreamId stream, Kernel function);
  /// What was queued there last.
  PortTicket last(StreamId stream);
  /// Makes what is queued there later, and last() from now on, wait for what a lane holds.
  void follow(StreamId stream, DeviceId device, PortLane lane);

 private:
  StreamId create(DeviceId device, StreamKind kind);
  StreamId stream_of(DeviceId device, PortLane lane);
  PortTicket launch_on(StreamId stream, Kernel variant, bool waits);
  bool look(Nanoseconds patience);

  Backend& backend_;
  std::mutex mutex_;
  std::vector<std::uint64_t> issued_, reached_;  ///< Tickets, by stream.
  std::map<std::pair<StreamId, std::uint64_t>, std::exception_ptr> errors_;
  std::map<std::pair<StreamId, std::uint64_t>, std::unique_ptr<Kernel>> kernels_;
  std::map<std::pair<DeviceId, PortLane>, StreamId> lanes_;
};

}  // namespace quadriga::message
