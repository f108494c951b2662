// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_gather.h: granules gathered by a plain kernel, as far as memory allows: the reference
// of packing short runs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace quadriga::bench {

/// Random bits, different ones for each seed.
void fill_random_words(void* data, std::size_t bytes, std::uint64_t seed);

/// into[i] = from[places[i]] for runs of `run` bytes, `run` divisible by 8; places count 8 bytes.
/// Without places run i is at i * step.
void gather(cudaStream_t stream, const void* from, const std::uint32_t* places, std::int64_t step,
            int run, std::int64_t runs, void* into);
/// The same the other way.
void scatter(cudaStream_t stream, void* into, const std::uint32_t* places, std::int64_t step,
             int run, std::int64_t runs, const void* from);

}  // namespace quadriga::bench
