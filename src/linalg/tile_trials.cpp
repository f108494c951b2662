// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/tile_trials.cpp: which plans are tried, and their programs without data.
//
// Invariants
//   1. Each trial has an engine of its own under the virtual clock; they share nothing but
//      `next_` and what is tried, which nobody changes.
//   2. A trial's place in `seconds_` is written by the thread that took its number, and read when
//      all threads have ended.
#include "linalg/tile_trials.h"

#include "base/config.h"
#include "base/random.h"
#include "base/thread.h"
#include "device/reference_machine.h"
#include "graph/pulled.h"
#include "linalg/estimate.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <utility>

namespace quadriga::linalg {
namespace {

thread_local const PlaceOwners* imposed = nullptr;
thread_local bool may_try_here = true;

class TrialsInTurn {
 public:
  TrialsInTurn(std::size_t count, const std::function<double(std::size_t)>& seconds_of)
      : seconds_of_(seconds_of), seconds_(count, std::numeric_limits<double>::infinity()) {}

  void run() {
    const auto cores = static_cast<std::size_t>(std::max(1, computing_cores()));
    std::vector<std::thread> others;
    while (others.size() + 1 < std::min(cores, seconds_.size()) && start_another(others)) {
    }
    take_turns();
    for (std::thread& other : others) other.join();
  }

  const std::vector<double>& seconds() const { return seconds_; }

 private:
  /// False if the system refuses: those that run do its work.
  bool start_another(std::vector<std::thread>& others) noexcept {
    try {
      others.reserve(others.size() + 1);  // A thread that started must not be lost.
      others.push_back(start_thread("quadriga trial", [this] { take_turns(); }));
      return true;
    } catch (...) {
      return false;
    }
  }

  void take_turns() noexcept {
    for (std::size_t i = next_++; i < seconds_.size(); i = next_++) try_one(i);
  }

  /// What can't run that way, for lack of memory as an example, is no candidate.
  void try_one(std::size_t index) noexcept {
    try {
      seconds_[index] = seconds_of_(index);
    } catch (...) {
      seconds_[index] = std::numeric_limits<double>::infinity();
    }
  }

  const std::function<double(std::size_t)>& seconds_of_;
  std::vector<double> seconds_;
  std::atomic<std::size_t> next_{0};
};

}  // namespace

double planning_seconds(double seconds) {
  return 1e-2 * static_cast<double>(Config::global().integer("planning_percent")) * seconds;
}

double trial_seconds(const Machine& machine, double tasks) {
  const PlanningCost& cost = planning_cost(machine);
  return cost.engine_seconds + tasks * cost.task_seconds;
}

std::vector<double> seconds_by_trial(std::size_t count,
                                     const std::function<double(std::size_t)>& seconds_of) {
  TrialsInTurn trials(count, seconds_of);
  trials.run();
  return trials.seconds();
}

std::vector<TileCandidate> worth_a_trial(const Machine& machine, std::vector<TileCandidate> found,
                                         TrialBudget budget) {
  if (found.empty()) return {};
  std::ranges::stable_sort(found, {}, &TileCandidate::seconds);
  const double best = found.front().seconds;
  std::vector<TileCandidate> worth;
  for (const TileCandidate& each : found) {
    const bool is_known = std::ranges::find(worth, each.tile, &TileCandidate::tile) != worth.end();
    const bool is_worth = each.seconds <= trial_tolerance * best &&
                          trial_seconds(machine, each.tasks) <= planning_seconds(best);
    if (is_worth && !is_known && worth.size() < most_trials && budget.take(each.steps))
      worth.push_back(each);
  }
  if (worth.size() == 1 && worth.front().tile == found.front().tile) worth.clear();
  return worth;
}

ImposedPlaces::ImposedPlaces(const PlaceOwners& places)
    : before_(std::exchange(imposed, &places)) {}
ImposedPlaces::~ImposedPlaces() { imposed = before_; }
const PlaceOwners* ImposedPlaces::current() noexcept { return imposed; }

WithoutTrials::WithoutTrials() : before_(std::exchange(may_try_here, false)) {}
WithoutTrials::~WithoutTrials() { may_try_here = before_; }

std::vector<PlaceOwners> places_beside(const PlaceOwners& places, bool may_pull) {
  constexpr std::size_t most = 23;  // All orders of four devices but one.
  constexpr int most_draws = 64;
  std::vector<PlaceOwners> others;
  const auto add = [&](const PlaceOwners& next) {
    if (next != places && std::ranges::find(others, next) == others.end()) others.push_back(next);
  };
  PlaceOwners next = places;
  do {
    std::ranges::next_permutation(next);
    add(next);
  } while (next != places && others.size() <= most);
  if (others.size() > most) {
    others.clear();
    Random random(places.size());
    for (int drawn = 0; drawn < most_draws && others.size() < most; ++drawn) {
      for (std::size_t i = next.size(); i > 1; --i) std::swap(next[i - 1], next[random.below(i)]);
      add(next);
    }
  }
  if (may_pull) others.insert(others.begin(), PlaceOwners(places.size(), pulled_owner));
  return others;
}

bool can_try(const Engine& engine) {
  return may_try_here && Config::global().text("policy", engine.options().policy) == "affinity";
}

TileCandidate best_by_trial(const Engine& engine, const Problem& problem, const PlaceOwners& places,
                            const std::vector<TileCandidate>& candidates) {
  const auto seconds = seconds_by_trial(candidates.size(), [&](std::size_t index) {
    return seconds_by_tile(engine, problem, candidates[index].tile, places);
  });
  const auto least = std::ranges::min_element(seconds);
  if (*least == std::numeric_limits<double>::infinity()) return {};
  TileCandidate best = candidates[static_cast<std::size_t>(least - seconds.begin())];
  best.seconds = *least;
  return best;
}

}  // namespace quadriga::linalg
