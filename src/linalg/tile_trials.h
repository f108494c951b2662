// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/tile_trials.h: plans of factorizations and products tried by the virtual clock.
#pragma once

#include <quadriga/linalg.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace quadriga::linalg {

/// A tile that a search has found.
struct TileCandidate {
  std::int64_t tile = 0;
  double seconds = 0;  ///< That a factorization by it takes, as a list schedule foretells.
  double tasks = 0;
};

/// Those that are worth a trial: within a fifth of the best, each once, the best first, where a
/// trial takes at most the setting `planning_percent` of the best's seconds. None if these are
/// fewer than two, or the best isn't among them: others may be worse than what isn't tried.
std::vector<TileCandidate> worth_a_trial(std::vector<TileCandidate> found);

/// How many times the seconds of the best a plan may seem to take to be tried.
inline constexpr double trial_tolerance = 1.2;
inline constexpr std::size_t most_trials = 8;

/// Whether a trial of so many tasks takes at most the setting's part of `seconds`.
bool may_try(double tasks, double seconds);

/// Runs so many trials, each on a thread of its own if there are cores, and returns what
/// `seconds_of(index)` did; infinity for one that failed.
std::vector<double> seconds_by_trial(std::size_t count,
                                     const std::function<double(std::size_t)>& seconds_of);

/// Whether a trial that runs on this thread says that devices pull tasks, or that they don't; empty
/// outside of trials.
std::optional<bool> imposed_pulling();

/// Whether the devices solve the problem more than 3 % sooner if they pull the tasks than if each
/// tile has an owner, which mostly moves fewer bytes: its program runs both ways without data.
/// False if it couldn't.
bool is_sooner_pulled(const Engine& engine, const Problem& problem, std::int64_t tile);

/// Whether the engine decides as trials do.
bool can_try(const Engine& engine);

/// The tile by which the engine's devices solve the problem soonest, by the virtual clock: the
/// program of each runs without data on a thread of its own. 0 if none could.
std::int64_t best_by_trial(const Engine& engine, const Problem& problem,
                           const std::vector<TileCandidate>& candidates);

}  // namespace quadriga::linalg
