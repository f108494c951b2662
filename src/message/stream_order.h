// SPDX-License-Identifier: BSD-3-Clause
// src/message/stream_order.h: a stream of the program and a message: which of its work comes
// before the message, and what is queued there later after it.
//
// Invariants
//   1. A stream is made to wait only for what is queued already, by events that the device knows:
//      never for another process, nor for a thread of the host. So streams can't wait in a circle.
#pragma once

#include <cstdint>
#include <memory>

#include "message/device_port.h"

namespace quadriga::message {

/// What of a stream is ordered with a message.
enum class StreamSide : std::uint8_t {
  before,            ///< What it holds now comes first.
  before_and_after,  ///< And what it gets later comes after a receive.
};

/// Guarded by what guards its message.
class StreamOrder {
 public:
  /// What the stream of a device holds now comes before the message.
  /// `stream` counts as Backend::synchronize() does. Errors: device_lost.
  StreamOrder(std::shared_ptr<DevicePort> port, DeviceId device, std::uintptr_t stream,
              StreamSide side = StreamSide::before_and_after);

  /// Whether the stream has come as far. Doesn't wait. Errors: device_lost.
  bool is_reached();
  /// What is queued on the stream from now on waits for what the device's lane holds.
  /// False if this stream can't: it is `cudaStreamPerThread`, another thread's here, or stands for
  /// all streams. The device is asked once.
  bool lead(PortLane lane);
  /// False if it won't be asked.
  bool can_lead() const noexcept { return can_lead_; }

 private:
  const std::shared_ptr<DevicePort> port_;
  const DeviceId device_;
  const std::uintptr_t stream_;
  StreamMark mark_;
  bool is_reached_ = false;
  bool can_lead_;
};

}  // namespace quadriga::message
