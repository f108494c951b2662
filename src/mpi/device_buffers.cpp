// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/device_buffers.cpp: buffers by their addresses, and copies between any two.
#include "mpi/device_buffers.h"

#include <quadriga/error.h>

#include "message/pack/stream.h"
#include "mpi/world.h"

namespace quadriga::mpi {

std::atomic<const DeviceBuffers*> device_buffers{nullptr};

message::MessageBuffer buffer_at(const void* address, const message::Layout& layout) {
  auto* const base = static_cast<std::byte*>(const_cast<void*>(address));
  const std::int64_t before = layout.bytes() > 0 ? layout.bounds().first : 0;
  if (!on_device(base + before)) return {layout, base};
  message::MessageBuffer found = device_buffers.load(std::memory_order_acquire)->at(base + before);
  found.layout = layout;
  found.data -= before;
  return found;
}

message::MessageBuffer bytes_at(const void* address, std::int64_t bytes) {
  return buffer_at(address, message::Layout::contiguous(bytes, message::ElementType::bytes));
}

void move(const message::MessageBuffer& from, const message::MessageBuffer& into) {
  require(from.layout.bytes() <= into.layout.bytes(), "more elements come than there is room for");
  if (from.layout.bytes() == 0) return;
  if (!from.on_device() && !into.on_device()) {
    if (std::byte* const to = into.flat()) {
      message::Packer(from.layout, from.data).pack(0, {to, from.bytes()});
      return;
    }
    if (const std::byte* const bytes = from.flat()) {
      message::Unpacker(into.layout, into.data).unpack(0, {bytes, from.bytes()});
      return;
    }
  }
  // A message to ourselves takes the way of all others.
  const message::CommunicatorCore& core = *world->core;
  const auto tag =
      static_cast<int>(world->next_tag.fetch_add(1, std::memory_order_relaxed) & 0x7fffffff);
  core.send_receive(from, core.rank(), tag, into, core.rank(), tag, {});
}

}  // namespace quadriga::mpi
