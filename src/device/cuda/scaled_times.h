// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/scaled_times.h: kernel times on CUDA devices, scaled from those of the
// reference machine.
#pragma once

#include <quadriga/machine.h>

#include <string>

namespace quadriga::cuda {

/// What of a device decides how fast it computes.
struct Speed {
  int major = 0;  ///< Compute capability.
  int minor = 0;
  int processors = 0;
  double clock_hertz = 0;
  double memory_bytes_a_second = 0;
  bool operator==(const Speed&) const = default;
};

/// Adds times of the matrix kernels, and of stated work, for the machine's column `column`: those
/// of the reference machine's device, scaled by the rates that processors and memory of both reach.
void add_rates(Machine& machine, const std::string& column, const Speed& speed);

}  // namespace quadriga::cuda
