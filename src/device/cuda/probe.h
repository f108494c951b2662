// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/probe.h: whether kernels of this build run on a device.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace quadriga::cuda {

/// cudaErrorNoKernelImageForDevice or cudaErrorInvalidDeviceFunction if none of them was compiled
/// for the current device.
cudaError_t probe_kernels();

/// Architectures that they were compiled for, as "8.0, 9.0, 10.0".
std::string kernel_architectures();

}  // namespace quadriga::cuda
