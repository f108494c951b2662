// SPDX-License-Identifier: BSD-3-Clause
// src/message/device_port.h: devices as messages use them, by a backend that belongs to no engine.
// Each part below has one purpose, and a lock of its own; nobody holds two of these.
#pragma once

#include <quadriga/machine.h>

#include <functional>
#include <memory>
#include <optional>

#include "device/backend.h"
#include "message/port_blocks.h"
#include "message/port_memory.h"
#include "message/port_operations.h"
#include "message/port_packing.h"
#include "message/program_streams.h"

namespace quadriga::message {

/// What the machine of one CUDA device alone doesn't say.
struct CudaPort {
  int ordinal = 0;       ///< As the CUDA runtime counts.
  double peer_rate = 0;  ///< Bytes a second from the nearest other device; 0: it sees none.
};

class DevicePort : public std::enable_shared_from_this<DevicePort> {
 public:
  /// Puts another backend around the port's: tests make it fail.
  using Wrap = std::function<std::unique_ptr<Backend>(std::unique_ptr<Backend>)>;
  /// For the devices of a machine whose memory the host reaches, or `cuda`: for that one. See
  /// ports.h.
  /// Errors: those of the backend; invalid_argument for a machine without memory of devices.
  explicit DevicePort(Machine machine, const Wrap& wrap = {}, std::optional<CudaPort> cuda = {});
  /// Waits for what is queued.
  ~DevicePort();
  DevicePort(const DevicePort&) = delete;
  DevicePort& operator=(const DevicePort&) = delete;

  PortMemory& memory() noexcept { return memory_; }
  PortBlocks& blocks() noexcept { return blocks_; }
  PortOperations& operations() noexcept { return operations_; }
  PortPacking& packing() noexcept { return packing_; }
  ProgramStreams& streams() noexcept { return streams_; }

  const Machine& machine() const noexcept { return backend_->machine(); }
  bool is_cuda() const noexcept { return is_cuda_; }
  /// Of the ports that this process made.
  std::uint64_t number() const noexcept { return number_; }
  /// The memory of a device.
  SpaceId space(DeviceId device) const noexcept;
  /// Bytes a second at which a device reads the nearest other one's memory, by what the machine
  /// says; of one that has no other, as it reads the host's.
  double peer_rate(DeviceId device) const;
  /// What a message between devices costs by what the machine says, else by the reference machine.
  MessageCost message_cost() const;
  /// Seconds that a copy takes by what the machine says.
  double seconds(SpaceId from, SpaceId to, std::size_t bytes) const;

 private:
  const bool is_cuda_;
  const CudaPort cuda_;
  const std::uint64_t number_;
  std::unique_ptr<Backend> backend_;  ///< Ends first: it calls what the parts keep.
  PortOperations operations_;
  PortMemory memory_;
  PortBlocks blocks_;
  PortPacking packing_;
  ProgramStreams streams_;
};

}  // namespace quadriga::message
