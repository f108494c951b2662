// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/cholesky_choice.h: the tile of a factorization and who owns its tiles, which trials
// choose from call to call.
#pragma once

#include "linalg/cholesky.h"
#include "linalg/tile_trials.h"

#include <cstdint>
#include <vector>

namespace quadriga::linalg {

/// The tile is that of the first call, so that results stay the same to the bit; who owns tiles
/// doesn't change them.
struct CholeskyChoice {
  std::int64_t tile = 0;  ///< 0: the figures don't tell the times of its kernels.
  PlaceOwners places;
  double foretold = 0;               ///< Seconds, by the list schedule,
  double tried = 0;                  ///< and by the virtual clock with these places; 0: not tried.
  double tasks = 0;                  ///< Of a trial,
  double steps = 0;                  ///< and what it takes of a call's budget for trials.
  double saved = 0;                  ///< Seconds that calls had for trials and didn't use.
  double price = 0;                  ///< Seconds that the last trials took each; 0: no trial yet.
  std::vector<PlaceOwners> untried;  ///< That may be quicker.
};

/// Who asks: a call tries further places, in the time that the calls so far had for it; a query
/// only what the first call would.
enum class Asked : std::uint8_t { by_call, by_query };

/// Of a trial of such a factorization, for TrialBudget. Where devices have little room for tiles of
/// others beside their own, all tasks in sight are looked at for each tile that comes
/// (schedule/lookahead.h): up to eight times as much was seen.
double trial_steps(const CholeskyShape& shape);

/// What factorizes the problem on the group soonest, of what was tried so far: tiles by list
/// schedules, and of the best of these by trials; then places. `tile`: the caller's, or 0.
CholeskyChoice choose_cholesky(const Engine& engine, const DeviceGroup& group,
                               const Problem& problem, std::int64_t tile, Trials trials,
                               Asked asked);

}  // namespace quadriga::linalg
