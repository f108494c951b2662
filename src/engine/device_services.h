// SPDX-License-Identifier: BSD-3-Clause
// src/engine/device_services.h: what a program asks of an engine's devices beside running tasks:
// their memory, the host's pages that they reach, and streams of its own.
#pragma once

#include <quadriga/machine.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/backend.h"

namespace quadriga {

/// Any thread. Answers wait for no task.
class DeviceServices {
 public:
  virtual ~DeviceServices() = default;
  /// Whether a device was set aside, as one that is lost.
  virtual bool is_lost(DeviceId device) const = 0;
  /// Of the device's memory that tiles may fill; 0 if it has none of its own.
  virtual std::size_t memory_bytes(DeviceId device) const = 0;
  /// Of the device's memory that is kept for libraries.
  virtual std::size_t reserve_bytes(DeviceId device) const = 0;
  // As Backend's.
  virtual DeviceId holder(const void* memory) const = 0;
  virtual void synchronize(DeviceId device, std::uintptr_t stream) const = 0;
  virtual std::unique_ptr<ForeignEvent> mark(DeviceId device, std::uintptr_t stream) const = 0;
  virtual bool pin(std::byte* memory, std::size_t bytes) = 0;
  virtual void unpin(std::byte* memory, std::size_t bytes) noexcept = 0;
};

/// Of the host's cores, which work on the user's memory: no device can be lost, or has streams.
class HostServices final : public DeviceServices {
 public:
  bool is_lost(DeviceId) const override { return false; }
  std::size_t memory_bytes(DeviceId) const override { return 0; }
  std::size_t reserve_bytes(DeviceId) const override { return 0; }
  DeviceId holder(const void*) const override { return no_device; }
  void synchronize(DeviceId, std::uintptr_t) const override {}
  std::unique_ptr<ForeignEvent> mark(DeviceId, std::uintptr_t) const override { return nullptr; }
  bool pin(std::byte*, std::size_t) override { return false; }
  void unpin(std::byte*, std::size_t) noexcept override {}
};

}  // namespace quadriga
