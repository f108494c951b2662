// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/scaled_times.h: kernel times on CUDA devices, scaled from those of a measured
// device.
#pragma once

#include <quadriga/machine.h>

#include <map>

namespace quadriga::cuda {

/// What of a device decides how fast it computes.
struct Speed {
  int major = 0;  ///< Compute capability.
  int minor = 0;
  int processors = 0;
  double clock_hertz = 0;
  bool operator==(const Speed&) const = default;
};

/// What products of short sums reach of those times, on the device that was measured.
std::map<double, double> usual_sums();

/// Adds times of the matrix kernels for the machine's column `column`: those of the device that was
/// measured (machines/h200x1.json), scaled by the rates that the processors of both reach.
void add_rates(Machine& machine, const std::string& column, const Speed& speed);

}  // namespace quadriga::cuda
