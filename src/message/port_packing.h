// SPDX-License-Identifier: BSD-3-Clause
// src/message/port_packing.h: packing and unpacking as operations of a port's lanes.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "message/pack/device_packer.h"
#include "message/port_operations.h"

namespace quadriga::message {

class PortPacking {
 public:
  /// Of a CUDA device, or on the host in place of emulated ones.
  PortPacking(PortOperations& operations, std::optional<int> cuda_device);

  /// As DevicePacker's; memory must live until the ticket has ended.
  PortTicket pack(DeviceId device, PortLane lane, const PackPart& part);
  PortTicket unpack(DeviceId device, PortLane lane, const PackPart& part);
  /// The same on a stream that isn't the port's; where streams are threads, at once.
  void pack_on(void* stream, const PackPart& part) { packer().pack(part, {stream, 0}); }
  void unpack_on(void* stream, const PackPart& part) { packer().unpack(part, {stream, 0}); }
  PortTicket move(DeviceId device, PortLane lane, const MovePart& part);
  PortTicket unpack_reduce(DeviceId device, PortLane lane, const PackPart& part,
                           ReduceOperation operation);
  PortTicket combine(DeviceId device, PortLane lane, const CombinePart& part,
                     ReduceOperation operation);

 private:
  using Packing = std::function<void(DevicePacker& packer, const PackQueue& queue)>;
  PortTicket queue(DeviceId device, PortLane lane, Packing packing);
  DevicePacker& packer();

  PortOperations& operations_;
  const std::optional<int> cuda_device_;
  std::mutex mutex_;  ///< Guards the making of `packer_`, which nothing changes later.
  std::unique_ptr<DevicePacker> packer_;
};

}  // namespace quadriga::message
