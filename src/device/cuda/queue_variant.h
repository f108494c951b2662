// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/queue_variant.h: calls of variants, which queue kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "device/backend.h"

namespace quadriga::cuda {

/// Calls a variant, which queues what it has to on a stream of the thread's device. `on_end` is
/// what it wants to be called when that has ended. Errors: what it throws; as check().
void queue_variant(const Launch& launch, cudaStream_t stream, std::function<void()>& on_end);

}  // namespace quadriga::cuda
