// SPDX-License-Identifier: BSD-3-Clause
// src/message/port_packing.cpp: launches what packs.
#include "message/port_packing.h"

#include <utility>

namespace quadriga::message {

PortPacking::PortPacking(PortOperations& operations, std::optional<int> cuda_device)
    : operations_(operations), cuda_device_(cuda_device) {}

// Made when it is first needed: on CUDA devices that loads its kernels.
DevicePacker& PortPacking::packer() {
  const std::lock_guard lock(mutex_);
  if (!packer_)
    packer_ = cuda_device_ ? DevicePacker::on_cuda(*cuda_device_) : DevicePacker::on_host();
  return *packer_;
}

PortTicket PortPacking::queue(DeviceId device, PortLane lane, Packing packing) {
  return operations_.launch(
      device, lane, [&packer = packer(), packing = std::move(packing)](const Arguments& call) {
        packing(packer, {call.stream, 0});
      });
}

PortTicket PortPacking::pack(DeviceId device, PortLane lane, const PackPart& part) {
  return queue(device, lane,
               [part](DevicePacker& packer, const PackQueue& queue) { packer.pack(part, queue); });
}

PortTicket PortPacking::unpack(DeviceId device, PortLane lane, const PackPart& part) {
  return queue(device, lane, [part](DevicePacker& packer, const PackQueue& queue) {
    packer.unpack(part, queue);
  });
}

PortTicket PortPacking::move(DeviceId device, PortLane lane, const MovePart& part) {
  return queue(device, lane,
               [part](DevicePacker& packer, const PackQueue& queue) { packer.move(part, queue); });
}

PortTicket PortPacking::unpack_reduce(DeviceId device, PortLane lane, const PackPart& part,
                                      ReduceOperation operation) {
  return queue(device, lane, [part, operation](DevicePacker& packer, const PackQueue& queue) {
    packer.unpack_reduce(part, operation, queue);
  });
}

PortTicket PortPacking::combine(DeviceId device, PortLane lane, const CombinePart& part,
                                ReduceOperation operation) {
  return queue(device, lane, [part, operation](DevicePacker& packer, const PackQueue& queue) {
    packer.combine(part, operation, queue);
  });
}

}  // namespace quadriga::message
