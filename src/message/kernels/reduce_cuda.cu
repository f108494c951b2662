// SPDX-License-Identifier: BSD-3-Clause
// src/message/kernels/reduce_cuda.cu: kernels that combine what arrives with what is there.
#include "message/kernels/pack_cuda.h"
#include "message/kernels/pack_launch.cuh"
#include "message/kernels/reduce_tiles.h"

namespace quadriga::message::cuda {
namespace {

template <class T, int most>
__global__ void __launch_bounds__(most_groups* tile_threads)
    reduce_kernel(const __grid_constant__ PlanBatch<most> batch, ReduceOperation operation) {
  for_each_tile(batch, [&](const PackPlan& plan, std::int64_t tile, int thread) {
    reduce_elements<T>(plan, tile, thread, operation);
  });
}

template <class T>
__global__ void __launch_bounds__(tile_threads)
    combine_kernel(const CombinePlan plan, ReduceOperation operation) {
  combine_elements<T>(plan, std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x,
                      std::int64_t{gridDim.x} * blockDim.x, operation);
}

}  // namespace

void combine(cudaStream_t stream, const CombinePart& part, ReduceOperation operation,
             int most_processors) {
  // Enough to fill a device; each thread then takes several parts.
  constexpr std::int64_t most_blocks = 4096;
  with_element(part.type, operation, [&]<class T>(T, ReduceOperation done) {
    const CombinePlan plan{static_cast<std::byte*>(part.into),
                           static_cast<const std::byte*>(part.from),
                           static_cast<const std::byte*>(part.with),
                           static_cast<std::int64_t>(part.bytes / sizeof(T))};
    const std::int64_t bytes_a_block = std::int64_t{tile_threads} * combined_at_once * 16;
    const auto bytes = static_cast<std::int64_t>(part.bytes);
    std::int64_t blocks = std::min((bytes + bytes_a_block - 1) / bytes_a_block, most_blocks);
    if (most_processors > 0) blocks = std::min<std::int64_t>(blocks, most_processors);
    combine_kernel<T><<<static_cast<unsigned>(blocks), tile_threads, 0, stream>>>(plan, done);
  });
  quadriga::cuda::check(cudaGetLastError(), "queueing a reduction");
}

void unpack_reduce(cudaStream_t stream, std::span<const PackPlan> plans, ReduceOperation operation,
                   ElementType type, int most_processors) {
  with_element(type, operation, [&]<class T>(T, ReduceOperation done) {
    with_batch(plans, most_processors, most_groups,
               [&]<int most>(const PlanBatch<most>& batch, LaunchShape shape) {
                 reduce_kernel<T, most><<<shape.blocks, shape.threads, 0, stream>>>(batch, done);
               });
  });
}

}  // namespace quadriga::message::cuda
