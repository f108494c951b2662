// SPDX-License-Identifier: BSD-3-Clause
// src/message/port_blocks.h: staging buffers that messages pass through, on the host and on
// devices; kept for the next message.
//
// Invariants
//   1. `mutex_` guards what is free. Memory of devices is made without it: another thread may be
//      freeing some, which takes its time.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "device/backend.h"
#include "message/port_memory.h"

namespace quadriga::message {

class PortBlocks {
 public:
  /// `scratch_bytes`: of the larger blocks, for what is packed and unpacked on the device.
  PortBlocks(Backend& backend, PortMemory& memory, std::size_t scratch_bytes) noexcept
      : backend_(backend), memory_(memory), scratch_bytes_(scratch_bytes) {}
  /// Nothing uses them any more. Those of devices go with the backend.
  ~PortBlocks();
  PortBlocks(const PortBlocks&) = delete;
  PortBlocks& operator=(const PortBlocks&) = delete;
  /// Host blocks are no longer quick to copy from: the backend is about to go.
  void unpin() noexcept;

  static constexpr std::size_t block_bytes = std::size_t{2} << 20;
  /// Host memory that copies are quick from and to, of block_bytes; null if there is none.
  std::byte* take_host();
  void give_host(std::byte* block) noexcept;
  /// A device's memory of block_bytes; null if there is none.
  std::byte* take(DeviceId device) { return take_sized(device, block_bytes); }
  void give(DeviceId device, std::byte* block) noexcept { give_sized(device, block_bytes, block); }
  /// The same of scratch_bytes().
  std::size_t scratch_bytes() const noexcept { return scratch_bytes_; }
  std::byte* take_scratch(DeviceId device) { return take_sized(device, scratch_bytes_); }
  void give_scratch(DeviceId device, std::byte* block) noexcept {
    give_sized(device, scratch_bytes_, block);
  }

 private:
  std::byte* take_sized(DeviceId device, std::size_t bytes);
  void give_sized(DeviceId device, std::size_t bytes, std::byte* block) noexcept;

  Backend& backend_;
  PortMemory& memory_;
  const std::size_t scratch_bytes_;
  std::mutex mutex_;
  std::vector<std::byte*> on_host_;
  std::map<std::pair<DeviceId, std::size_t>, std::vector<std::byte*>> on_devices_;  ///< By bytes.
};

}  // namespace quadriga::message
