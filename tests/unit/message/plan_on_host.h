// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/plan_on_host.h: runs a device's plan on the host, thread after thread.
#pragma once

#include "message/kernels/pack_tiles.h"

namespace quadriga::message {

template <bool packs, int bytes>
void run_granules(const PackPlan& plan) {
  for (std::int64_t tile = 0; tile < plan.tiles; ++tile) {
    for (int thread = 0; thread < tile_threads; ++thread) {
      if (plan.leaf == PlanLeaf::run)
        move_granules<packs, bytes, PlanLeaf::run>(plan, tile, thread);
      else if (plan.leaf == PlanLeaf::taper)
        move_granules<packs, bytes, PlanLeaf::taper>(plan, tile, thread);
      else if (plan.leaf == PlanLeaf::equal_runs)
        move_granules<packs, bytes, PlanLeaf::equal_runs>(plan, tile, thread);
      else
        move_granules<packs, bytes, PlanLeaf::list>(plan, tile, thread);
    }
  }
}

template <bool packs, int bytes>
void run_transpose(const PackPlan& plan) {
  TransposeSquare<bytes> square;
  for (std::int64_t i = 0; i < plan.tiles; ++i) {
    const TransposeTile tile = transpose_tile<bytes>(plan, i);
    for (int thread = 0; thread < tile_threads; ++thread)
      move_square<packs, packs>(plan, tile, square, thread);
    for (int thread = 0; thread < tile_threads; ++thread)
      move_square<packs, !packs>(plan, tile, square, thread);
  }
}

template <bool packs, int bytes>
void run_sized(const PackPlan& plan) {
  if (plan.path == PlanPath::transpose)
    run_transpose<packs, bytes>(plan);
  else
    run_granules<packs, bytes>(plan);
}

template <int bytes, PlanLeaf from>
void run_move_from(const MovePlan& plan) {
  for (std::int64_t tile = 0; tile < plan.to.tiles; ++tile) {
    for (int thread = 0; thread < tile_threads; ++thread) {
      if (plan.to.leaf == PlanLeaf::taper)
        move_between<bytes, from, PlanLeaf::taper>(plan, tile, thread);
      else
        move_between<bytes, from, PlanLeaf::run>(plan, tile, thread);
    }
  }
}

template <int bytes>
void run_move_sized(const MovePlan& plan) {
  if (plan.from.leaf == PlanLeaf::taper)
    run_move_from<bytes, PlanLeaf::taper>(plan);
  else
    run_move_from<bytes, PlanLeaf::run>(plan);
}

inline void run_move(const MovePlan& plan) {
  switch (plan.to.granule) {
    case 16:
      return run_move_sized<16>(plan);
    case 8:
      return run_move_sized<8>(plan);
    case 4:
      return run_move_sized<4>(plan);
    case 2:
      return run_move_sized<2>(plan);
    default:
      return run_move_sized<1>(plan);
  }
}

template <bool packs>
void run_plan(const PackPlan& plan) {
  if (plan.path == PlanPath::windows) {
    for (std::int64_t tile = 0; tile < plan.tiles; ++tile)
      for (int thread = 0; thread < tile_threads; ++thread) move_windows<packs>(plan, tile, thread);
    return;
  }
  switch (plan.granule) {
    case 16:
      return run_sized<packs, 16>(plan);
    case 8:
      return run_sized<packs, 8>(plan);
    case 4:
      return run_sized<packs, 4>(plan);
    case 2:
      return run_sized<packs, 2>(plan);
    default:
      return run_sized<packs, 1>(plan);
  }
}

}  // namespace quadriga::message
