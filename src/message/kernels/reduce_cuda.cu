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

}  // namespace

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
