// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/scaled_times.h: kernel times on CUDA devices, scaled from those of the
// reference machine.
#pragma once

#include <quadriga/machine.h>

#include <string>

#include "device/device_speed.h"

namespace quadriga::cuda {

/// Adds times of the matrix kernels, and of stated work, for the machine's column `column`: those
/// of the reference machine's device, scaled by the rates that processors and memory of both reach.
void add_rates(Machine& machine, const std::string& column, const DeviceSpeed& speed);

}  // namespace quadriga::cuda
