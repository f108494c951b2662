// SPDX-License-Identifier: BSD-3-Clause
// src/device/recorded_absent.cpp: stands in for recordings in builds without CUDA.
#include "device/recorded.h"

#include "device/recorded_together.h"

namespace quadriga {

Kernel recorded(Kernel variant) { return variant; }

bool can_meet(const Machine& machine, std::span<const DeviceId> devices) {
  return kernels_share_memory(machine, devices);
}

std::vector<Kernel> recorded_together(std::size_t members,
                                      std::function<void(const DeviceQueues&)> /*queue*/) {
  return std::vector<Kernel>(members);
}

}  // namespace quadriga
