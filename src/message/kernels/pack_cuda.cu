// SPDX-License-Identifier: BSD-3-Clause
// src/message/kernels/pack_cuda.cu: kernels that pack and unpack by plans.
#include "message/kernels/pack_cuda.h"

#include "message/kernels/pack_launch.cuh"

namespace quadriga::message::cuda {
namespace {

constexpr int most_threads = most_groups * tile_threads;

template <bool packs, int bytes, PlanLeaf leaf, int most>
__global__ void __launch_bounds__(most_threads)
    granules_kernel(const __grid_constant__ PlanBatch<most> batch) {
  for_each_tile(batch, [](const PackPlan& plan, std::int64_t tile, int thread) {
    move_granules<packs, bytes, leaf>(plan, tile, thread);
  });
}

template <bool packs, int most>
__global__ void __launch_bounds__(most_threads)
    windows_kernel(const __grid_constant__ PlanBatch<most> batch) {
  for_each_tile(batch, [](const PackPlan& plan, std::int64_t tile, int thread) {
    move_windows<packs>(plan, tile, thread);
  });
}

// Blocks of a multiprocessor: while some wait at a barrier, the others' bytes are on their way.
constexpr int transposes_at_once(int bytes) { return bytes == 8 ? 6 : 4; }

// One group a block: it waits at barriers.
template <bool packs, int bytes, int most>
__global__ void __launch_bounds__(tile_threads, transposes_at_once(bytes))
    transpose_kernel(const __grid_constant__ PlanBatch<most> batch) {
  __shared__ TransposeSquare<bytes> square;
  for_each_tile(batch, [&](const PackPlan& plan, std::int64_t index, int thread) {
    const TransposeTile tile = transpose_tile<bytes>(plan, index);
    move_square<packs, packs>(plan, tile, square, thread);
    __syncthreads();
    move_square<packs, !packs>(plan, tile, square, thread);
    __syncthreads();
  });
}

using Plans = std::span<const PackPlan>;

template <bool packs, int bytes, PlanLeaf leaf>
void launch_granules(cudaStream_t stream, Plans plans, int most_processors) {
  with_batch(plans, most_processors, most_groups,
             [&]<int most>(const PlanBatch<most>& batch, LaunchShape shape) {
               granules_kernel<packs, bytes, leaf, most>
                   <<<shape.blocks, shape.threads, 0, stream>>>(batch);
             });
}

template <bool packs, int bytes>
void launch_transpose(cudaStream_t stream, Plans plans, int most_processors) {
  with_batch(
      plans, most_processors, 1, [&]<int most>(const PlanBatch<most>& batch, LaunchShape shape) {
        transpose_kernel<packs, bytes, most><<<shape.blocks, shape.threads, 0, stream>>>(batch);
      });
}

template <bool packs>
void launch_windows(cudaStream_t stream, Plans plans, int most_processors) {
  with_batch(plans, most_processors, most_groups,
             [&]<int most>(const PlanBatch<most>& batch, LaunchShape shape) {
               windows_kernel<packs, most><<<shape.blocks, shape.threads, 0, stream>>>(batch);
             });
}

template <bool packs, int bytes>
void launch_sized(cudaStream_t stream, Plans plans, int most_processors) {
  if (plans[0].path == PlanPath::transpose)
    return launch_transpose<packs, bytes>(stream, plans, most_processors);
  switch (plans[0].leaf) {
    case PlanLeaf::run:
      return launch_granules<packs, bytes, PlanLeaf::run>(stream, plans, most_processors);
    case PlanLeaf::taper:
      return launch_granules<packs, bytes, PlanLeaf::taper>(stream, plans, most_processors);
    case PlanLeaf::equal_runs:
      return launch_granules<packs, bytes, PlanLeaf::equal_runs>(stream, plans, most_processors);
    case PlanLeaf::list:
      return launch_granules<packs, bytes, PlanLeaf::list>(stream, plans, most_processors);
  }
}

template <bool packs>
void launch_any(cudaStream_t stream, Plans plans, int most_processors) {
  if (plans[0].path == PlanPath::windows)
    return launch_windows<packs>(stream, plans, most_processors);
  switch (plans[0].granule) {
    case 16:
      return launch_sized<packs, 16>(stream, plans, most_processors);
    case 8:
      return launch_sized<packs, 8>(stream, plans, most_processors);
    case 4:
      return launch_sized<packs, 4>(stream, plans, most_processors);
    case 2:
      return launch_sized<packs, 2>(stream, plans, most_processors);
    default:
      return launch_sized<packs, 1>(stream, plans, most_processors);
  }
}

}  // namespace

KernelKind kind_of(const PackPlan& plan) noexcept {
  if (plan.path == PlanPath::windows) return {plan.path, 1, PlanLeaf::run};
  return {plan.path, plan.granule, plan.leaf};
}

void pack(cudaStream_t stream, Plans plans, int most_processors) {
  launch_any<true>(stream, plans, most_processors);
}

void unpack(cudaStream_t stream, Plans plans, int most_processors) {
  launch_any<false>(stream, plans, most_processors);
}

}  // namespace quadriga::message::cuda
