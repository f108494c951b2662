// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/cuda_backend.h: CUDA devices, if this build and this machine have any.
#pragma once

#include <quadriga/machine.h>

#include <memory>
#include <string>

#include "device/backend.h"

namespace quadriga {

/// The CUDA devices of this machine and what joins them; no devices if there are none.
Machine discover_cuda();

/// Why discover_cuda() finds none; empty if it finds some.
std::string cuda_absence();

/// Drives a machine of CUDA devices.
///
/// They are the runtime's in their order; where the machine has more, they share them. Begins and
/// ends of completions are when the driver could see them: exact to the time between two calls of
/// next_completion(), or 50 us where that waits.
/// Errors:  unavailable where discover_cuda() finds none.
std::unique_ptr<Backend> make_cuda_backend(Machine machine);

}  // namespace quadriga
