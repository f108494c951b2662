// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_spin.h: a kernel that takes a stated time and a whole GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace quadriga::bench {

/// Queues a kernel of so many nanoseconds that fills all multiprocessors of the current device, so
/// that no other runs beside it, and adds one to each of `count` bytes. Errors: as cuda::check().
void queue_spin(cudaStream_t stream, std::int64_t nanoseconds, std::uint8_t* bytes,
                std::int64_t count);

}  // namespace quadriga::bench
