// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/estimate.h: estimate() with the largest program that it simulates whole.
#pragma once

#include "linalg/product_plan.h"
#include "linalg/tile_trials.h"

#include <quadriga/linalg.h>

#include <cstdint>

namespace quadriga::linalg {

/// Tasks take up to 0.3 ms by the virtual clock, of several devices with little memory on a busy
/// core: so many are simulated in a few seconds.
inline constexpr double most_simulated_tasks = 20000;

/// As estimate(), where a program of more tasks than `most_tasks` is extrapolated.
Estimate estimate(const Engine& engine, const Problem& problem, const Options& options,
                  double most_tasks);

/// What a product from host memory to host memory takes by such a plan for all accelerators, by the
/// virtual clock.
double seconds_by_plan(const Engine& engine, const Problem& problem, const ProductPlan& plan);

/// What a problem that isn't a product takes on all accelerators by tiles of such an order, owned
/// by those who have these places, by the virtual clock.
double seconds_by_tile(const Engine& engine, const Problem& problem, std::int64_t tile,
                       const PlaceOwners& places);

/// That both ran so far, by all threads.
std::uint64_t tasks_tried() noexcept;

}  // namespace quadriga::linalg
