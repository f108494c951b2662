// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/links.h: what a machine's devices and links are to a stream. Pure.
#pragma once

#include <quadriga/machine.h>

#include <span>
#include <vector>

#include "pipeline/dispatch.h"
#include "pipeline/stage.h"

namespace quadriga {

struct StreamMachine {
  std::vector<DeviceId> ids;  ///< By device of the stream.
  std::vector<StreamDevice> devices;
  std::vector<int> links;  ///< Copies that fill each link of the machine: at most so many at once.
};

/// Accelerators that are meant to run all kernels; where there is none, the host's cores.
/// Errors: unavailable if there is neither.
std::vector<DeviceId> usable_devices(const Machine& machine, const std::vector<Stage>& stages);

/// How chunks reach some devices of a machine. A link that one copy fills is given to one copy at a
/// time; one that is faster than what else copies cross takes as many as fill it.
StreamMachine stream_machine(const Machine& machine, std::span<const DeviceId> devices);

}  // namespace quadriga
