// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/cuda_backend.h: CUDA devices, if this build and this machine have any.
#pragma once

#include <quadriga/machine.h>

#include <memory>

#include "device/backend.h"

namespace quadriga {

/// The CUDA devices of this machine and what joins them; no devices if there are none.
Machine discover_cuda();

/// Drives the CUDA devices of a machine, and its CPU device if it has one.
/// Errors:  unavailable where discover_cuda() finds none.
std::unique_ptr<Backend> make_cuda_backend(Machine machine);

}  // namespace quadriga
