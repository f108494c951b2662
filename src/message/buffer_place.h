// SPDX-License-Identifier: BSD-3-Clause
// src/message/buffer_place.h: places of public buffers, and the streams that come before.
#pragma once

#include <quadriga/message_buffer.h>

#include <memory>

#include "message/device_port.h"
#include "message/stream_order.h"
#include "message/transfer.h"

namespace quadriga::message {

/// The library doesn't write to what is sent.
template <class Buffer>
MessageBuffer place_of(const Buffer& buffer) {
  auto* const data = static_cast<std::byte*>(const_cast<void*>(buffer.data()));
  if (buffer.layout().bytes() == 0) return {buffer.layout(), data};
  return {buffer.layout(), data, buffer.memory().port, buffer.memory().device};
}

/// Null without a stream. Errors: device_lost.
template <class Buffer>
std::shared_ptr<StreamOrder> order_of(const Buffer& buffer,
                                      StreamSide side = StreamSide::before_and_after) {
  const DeviceMemory& memory = buffer.memory();
  if (!memory.stream || !memory.port || buffer.layout().bytes() == 0) return nullptr;
  return std::make_shared<StreamOrder>(memory.port, memory.device, *memory.stream, side);
}

/// What a collective takes: elements, once their stream has come so far.
struct OrderedPlace {
  MessageBuffer place;
  std::shared_ptr<StreamOrder> before;
};
template <class Buffer>
OrderedPlace ordered_place_of(const Buffer& buffer) {
  return {place_of(buffer), order_of(buffer, StreamSide::before)};
}

}  // namespace quadriga::message
