// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/copies.h: copies between the host and CUDA devices, and from device to device.
#pragma once

#include <cuda_runtime_api.h>
#include <quadriga/machine.h>

#include <vector>

#include "device/backend.h"

namespace quadriga::cuda {

/// The runtime's number of each device of a machine: CUDA devices in order, starting again where
/// the machine has more of them than the runtime; -1 for other kinds.
std::vector<int> ordinals_of(const Machine& machine);

/// Lets each device read and write the others' memory where the hardware can.
void enable_peer_access(const std::vector<int>& ordinals);

/// Queues a copy on a stream of either device. Ordinals: -1 for the host.
cudaError_t queue_copy(const Copy& copy, int from, int to, cudaStream_t stream);

/// A copy from the host by parts. What a device gives to others goes through the engine that its
/// copies from the host go through: between two parts it has its turn.
cudaError_t queue_in_slices(const Copy& copy, int to, cudaStream_t stream);

}  // namespace quadriga::cuda
