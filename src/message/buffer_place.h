// SPDX-License-Identifier: BSD-3-Clause
// src/message/buffer_place.h: places of public buffers.
#pragma once

#include <quadriga/message_buffer.h>

#include "message/device_port.h"
#include "message/transfer.h"

namespace quadriga::message {

/// The library doesn't write to what is sent.
template <class Buffer>
MessageBuffer place_of(const Buffer& buffer) {
  auto* const data = static_cast<std::byte*>(const_cast<void*>(buffer.data()));
  if (buffer.layout().bytes() == 0) return {buffer.layout(), data};
  return {buffer.layout(), data, buffer.memory().port, buffer.memory().device};
}

/// Once its stream has come so far. Errors: device_lost.
template <class Buffer>
MessageBuffer ready_place_of(const Buffer& buffer) {
  const DeviceMemory& memory = buffer.memory();
  if (memory.stream && memory.port) memory.port->synchronize(memory.device, *memory.stream);
  return place_of(buffer);
}

}  // namespace quadriga::message
