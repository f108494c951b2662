// SPDX-License-Identifier: BSD-3-Clause
// src/message/port_blocks.cpp: hands out blocks that are free, and makes others.
#include "message/port_blocks.h"

#include <cstdlib>

namespace quadriga::message {

PortBlocks::~PortBlocks() {
  for (std::byte* const block : on_host_) std::free(block);
}

void PortBlocks::unpin() noexcept {
  const std::lock_guard lock(mutex_);
  for (std::byte* const block : on_host_) backend_.unpin(block, block_bytes);
}

std::byte* PortBlocks::take_host() {
  const std::lock_guard lock(mutex_);
  if (!on_host_.empty()) {
    std::byte* const block = on_host_.back();
    on_host_.pop_back();
    return block;
  }
  auto* const made = static_cast<std::byte*>(std::aligned_alloc(4096, block_bytes));
  if (made) backend_.pin(made, block_bytes);
  return made;
}

void PortBlocks::give_host(std::byte* block) noexcept {
  const std::lock_guard lock(mutex_);
  if (block) on_host_.push_back(block);
}

std::byte* PortBlocks::take_sized(DeviceId device, std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    std::vector<std::byte*>& free = on_devices_[{device, bytes}];
    if (!free.empty()) {
      std::byte* const block = free.back();
      free.pop_back();
      return block;
    }
  }
  return memory_.allocate(device, bytes);
}

void PortBlocks::give_sized(DeviceId device, std::size_t bytes, std::byte* block) noexcept {
  const std::lock_guard lock(mutex_);
  if (block) on_devices_[{device, bytes}].push_back(block);
}

}  // namespace quadriga::message
