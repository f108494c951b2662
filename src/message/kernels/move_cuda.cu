// SPDX-License-Identifier: BSD-3-Clause
// src/message/kernels/move_cuda.cu: kernels that move elements from place to place, not packed in
// between: the memory of a peer is read once, and that of the device is written once.
#include "message/kernels/pack_cuda.h"
#include "message/kernels/pack_launch.cuh"

namespace quadriga::message::cuda {
namespace {

template <int bytes, PlanLeaf from, PlanLeaf to>
__global__ void __launch_bounds__(most_groups* tile_threads)
    move_kernel(const __grid_constant__ MovePlan plan) {
  const auto groups = static_cast<int>(blockDim.x) / tile_threads;
  const auto group = static_cast<int>(threadIdx.x) / tile_threads;
  const auto thread = static_cast<int>(threadIdx.x) % tile_threads;
  for (std::int64_t tile = std::int64_t{blockIdx.x} * groups + group; tile < plan.to.tiles;
       tile += std::int64_t{gridDim.x} * groups)
    move_between<bytes, from, to>(plan, tile, thread);
}

template <int bytes, PlanLeaf from, PlanLeaf to>
void launch(cudaStream_t stream, const MovePlan& plan, int most_processors) {
  const LaunchShape shape = shape_of(plan.to.tiles, most_processors, most_groups);
  move_kernel<bytes, from, to><<<shape.blocks, shape.threads, 0, stream>>>(plan);
}

template <int bytes, PlanLeaf from>
void launch_to(cudaStream_t stream, const MovePlan& plan, int most_processors) {
  if (plan.to.leaf == PlanLeaf::taper)
    launch<bytes, from, PlanLeaf::taper>(stream, plan, most_processors);
  else
    launch<bytes, from, PlanLeaf::run>(stream, plan, most_processors);
}

template <int bytes>
void launch_sized(cudaStream_t stream, const MovePlan& plan, int most_processors) {
  if (plan.from.leaf == PlanLeaf::taper)
    launch_to<bytes, PlanLeaf::taper>(stream, plan, most_processors);
  else
    launch_to<bytes, PlanLeaf::run>(stream, plan, most_processors);
}

void launch_any(cudaStream_t stream, const MovePlan& plan, int most_processors) {
  switch (plan.to.granule) {
    case 16:
      return launch_sized<16>(stream, plan, most_processors);
    case 8:
      return launch_sized<8>(stream, plan, most_processors);
    case 4:
      return launch_sized<4>(stream, plan, most_processors);
    case 2:
      return launch_sized<2>(stream, plan, most_processors);
    default:
      return launch_sized<1>(stream, plan, most_processors);
  }
}

}  // namespace

void move(cudaStream_t stream, const MovePlan& plan, int most_processors) {
  launch_any(stream, plan, most_processors);
  quadriga::cuda::check(cudaGetLastError(), "queueing a kernel that moves elements");
}

}  // namespace quadriga::message::cuda
