// SPDX-License-Identifier: BSD-3-Clause
// src/message/kernels/pack_launch.cuh: several plans as the parameters of one launch.
#pragma once

#include <algorithm>

#include "device/cuda/cuda_check.h"
#include "message/kernels/pack_cuda.h"
#include "message/kernels/pack_tiles.h"

namespace quadriga::message::cuda {

/// Plans of one launch, and where the tiles of each end among all.
template <int most>
struct PlanBatch {
  int plans = 0;
  std::int64_t tiles_end[most];
  PackPlan plan[most];
};

/// Groups of tile_threads in a block that is all that its multiprocessor may be given.
inline constexpr int most_groups = 4;

/// Calls body(plan, tile, thread) for the tiles of this thread's group.
template <int most, class Body>
__device__ void for_each_tile(const PlanBatch<most>& batch, Body body) {
  const std::int64_t all = batch.tiles_end[batch.plans - 1];
  const auto groups = static_cast<int>(blockDim.x) / tile_threads;
  const auto group = static_cast<int>(threadIdx.x) / tile_threads;
  const auto thread = static_cast<int>(threadIdx.x) % tile_threads;
  int which = 0;
  for (std::int64_t tile = std::int64_t{blockIdx.x} * groups + group; tile < all;
       tile += std::int64_t{gridDim.x} * groups) {
    while (tile >= batch.tiles_end[which]) ++which;
    body(batch.plan[which], tile - (which == 0 ? 0 : batch.tiles_end[which - 1]), thread);
  }
}

/// Blocks and threads: a block a tile, or as few large blocks as there may be multiprocessors.
struct LaunchShape {
  unsigned blocks = 0;
  unsigned threads = tile_threads;
};

inline LaunchShape shape_of(std::int64_t tiles, int most_processors, int groups) {
  constexpr std::int64_t largest_grid = 2147483647;
  if (most_processors <= 0) return {static_cast<unsigned>(std::min(tiles, largest_grid))};
  const std::int64_t blocks =
      std::min<std::int64_t>((tiles + groups - 1) / groups, most_processors);
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(tile_threads * groups)};
}

template <int most>
LaunchShape fill(PlanBatch<most>& batch, std::span<const PackPlan> plans, int most_processors,
                 int groups) {
  std::int64_t tiles = 0;
  for (const PackPlan& plan : plans) {
    batch.plan[batch.plans] = plan;
    batch.tiles_end[batch.plans++] = tiles += plan.tiles;
  }
  return shape_of(tiles, most_processors, groups);
}

/// run(batch, shape) with a batch that is no larger than needed.
template <class Run>
void with_batch(std::span<const PackPlan> plans, int most_processors, int groups, Run run) {
  if (plans.size() == 1) {
    PlanBatch<1> batch;
    const LaunchShape shape = fill(batch, plans, most_processors, groups);
    run(batch, shape);
  } else {
    PlanBatch<most_plans_a_launch> batch;
    const LaunchShape shape = fill(batch, plans, most_processors, groups);
    run(batch, shape);
  }
  quadriga::cuda::check(cudaGetLastError(), "queueing a kernel that packs");
}

}  // namespace quadriga::message::cuda
