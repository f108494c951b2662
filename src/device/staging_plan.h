// SPDX-License-Identifier: BSD-3-Clause
// src/device/staging_plan.h: places threads and pinned buffers near the devices that they serve.
#pragma once

#include <quadriga/machine.h>
#include <quadriga/types.h>

#include <vector>

namespace quadriga {

/// Devices that share threads, where these run (anywhere, if no processor is named) and how many.
struct StagingGroup {
  std::vector<DeviceId> devices;
  std::vector<int> processors;
  int threads = 1;
};

/// A group for each NUMA node that CUDA devices hang on, if the machine has several and the node of
/// each device is known; else one group. `cores`: that this process may use.
std::vector<StagingGroup> plan_staging(const Machine& machine, int cores);

}  // namespace quadriga
