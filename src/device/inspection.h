// SPDX-License-Identifier: BSD-3-Clause
// src/device/inspection.h: reads all that is known of this computer's devices, used or not.
#pragma once

#include <string>

#include "device/cuda_reading.h"
#include "device/nvml.h"

namespace quadriga {

/// GPUs as NVML sees them and as CUDA does, as one JSON object: for `quadriga doctor`.
///
/// Cost:  CUDA makes a context on each of its devices: some tenths of a second each.
std::string inspection_json();
/// The same of given readings.
std::string inspection_json(const NvmlReading& nvml, const CudaReading& cuda);

}  // namespace quadriga
