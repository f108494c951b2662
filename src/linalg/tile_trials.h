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
  double steps = 0;  ///< Of its trial (TrialBudget).
};

/// What the trials of a call may take together, however long it runs: a step is a look at one
/// device for one task. Not counted in seconds, so that the same call chooses the same again.
class TrialBudget {
 public:
  static constexpr double most_steps = 4e6;

  /// False if so many aren't left.
  bool take(double steps) noexcept {
    if (steps > left_) return false;
    left_ -= steps;
    return true;
  }
  double left() const noexcept { return left_; }

 private:
  double left_ = most_steps;
};

/// Those that are worth a trial on that machine: within a fifth of the best, each once, the best
/// first, where a trial takes at most the setting `planning_percent` of the best's seconds and what
/// the budget has left. None if only the best is.
std::vector<TileCandidate> worth_a_trial(const Machine& machine, std::vector<TileCandidate> found,
                                         TrialBudget budget = {});

/// How many times the seconds of the best a plan may seem to take to be tried.
inline constexpr double trial_tolerance = 1.2;
/// At the same time, on as many cores.
inline constexpr std::size_t most_trials = 8;

/// How long a call of so many seconds may try plans, by the setting `planning_percent`.
double planning_seconds(double seconds);
/// What the trial of a program of so many tasks takes, beside others on other cores.
double trial_seconds(const Machine& machine, double tasks);

/// Runs so many trials, each on a thread of its own if there are cores, and returns what
/// `seconds_of(index)` did; infinity for one that failed.
std::vector<double> seconds_by_trial(std::size_t count,
                                     const std::function<double(std::size_t)>& seconds_of);

/// The devices that have the places of a map of owners (DeviceGroup::places); all of them
/// pulled_owner: devices pull the tasks.
using PlaceOwners = std::vector<DeviceId>;

/// What the factorizations of this thread take instead of choosing, while it lives: of trials and
/// estimates.
class ImposedPlaces {
 public:
  explicit ImposedPlaces(const PlaceOwners& places);
  ~ImposedPlaces();
  ImposedPlaces(const ImposedPlaces&) = delete;
  ImposedPlaces& operator=(const ImposedPlaces&) = delete;

  /// Those of this thread; null: none.
  static const PlaceOwners* current() noexcept;

 private:
  const PlaceOwners* before_;
};

/// Other ways than `places` to say who computes a factorization's tiles: if `may_pull`, that
/// devices pull the tasks; then orders of the places, each once: all if they are few, else some
/// that are drawn at random, always the same.
std::vector<PlaceOwners> places_beside(const PlaceOwners& places, bool may_pull);

/// This thread's calls try nothing while it lives: of small problems that stand for one that is too
/// large to be tried.
class WithoutTrials {
 public:
  WithoutTrials();
  ~WithoutTrials();
  WithoutTrials(const WithoutTrials&) = delete;
  WithoutTrials& operator=(const WithoutTrials&) = delete;

 private:
  const bool before_;
};

/// Whether the engine decides as trials do, and this thread may try.
bool can_try(const Engine& engine);

/// The candidate by which the engine's devices solve the problem soonest, and its seconds by the
/// virtual clock: the program of each runs without data on a thread of its own. Tile 0 if none
/// could.
TileCandidate best_by_trial(const Engine& engine, const Problem& problem, const PlaceOwners& places,
                            const std::vector<TileCandidate>& candidates);

}  // namespace quadriga::linalg
