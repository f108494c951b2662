// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/tile_trials.cpp: which tiles are tried, and their programs without data.
//
// Invariants
//   1. Each trial has an engine of its own under the virtual clock; they share nothing but
//      `next_` and the candidates, which nobody changes.
//   2. A trial's place in `seconds_` is written by the thread that took its number, and read when
//      all threads have ended.
#include "linalg/tile_trials.h"

#include "base/config.h"
#include "base/thread.h"
#include "linalg/estimate.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

namespace quadriga::linalg {
namespace {

/// Of a program without data, beside others on other cores: `quadriga-bench overhead --case
/// decide-4`, on the machine of docs/benchmarks.md.
constexpr double seconds_a_task = 3e-6;
constexpr std::size_t most_trials = 8;

class TilesInTurn {
 public:
  TilesInTurn(const Engine& engine, const Problem& problem,
              const std::vector<TileCandidate>& candidates)
      : engine_(engine),
        problem_(problem),
        candidates_(candidates),
        seconds_(candidates.size(), std::numeric_limits<double>::infinity()) {}

  void run() {
    const auto cores = static_cast<std::size_t>(std::max(1, computing_cores()));
    std::vector<std::thread> others;
    while (others.size() + 1 < std::min(cores, candidates_.size()) && start_another(others)) {
    }
    take_turns();
    for (std::thread& other : others) other.join();
  }

  std::int64_t best() const {
    const auto least = std::ranges::min_element(seconds_);
    return *least < std::numeric_limits<double>::infinity()
               ? candidates_[static_cast<std::size_t>(least - seconds_.begin())].tile
               : 0;
  }

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
    for (std::size_t i = next_++; i < candidates_.size(); i = next_++) try_tile(i);
  }

  /// What can't run that way, for lack of memory as an example, is no candidate.
  void try_tile(std::size_t index) noexcept {
    constexpr double whatever_tasks = std::numeric_limits<double>::infinity();
    try {
      Options options;
      options.tile = candidates_[index].tile;
      seconds_[index] = estimate(engine_, problem_, options, whatever_tasks).seconds;
    } catch (...) {
      seconds_[index] = std::numeric_limits<double>::infinity();
    }
  }

  const Engine& engine_;
  const Problem& problem_;
  const std::vector<TileCandidate>& candidates_;
  std::vector<double> seconds_;
  std::atomic<std::size_t> next_{0};
};

}  // namespace

std::vector<TileCandidate> worth_a_trial(std::vector<TileCandidate> found) {
  constexpr double tolerance = 1.2;
  if (found.empty()) return {};
  std::ranges::stable_sort(found, {}, &TileCandidate::seconds);
  const double best = found.front().seconds;
  const double share = 1e-2 * static_cast<double>(Config::global().integer("planning_percent"));
  std::vector<TileCandidate> worth;
  for (const TileCandidate& each : found) {
    const bool is_known = std::ranges::find(worth, each.tile, &TileCandidate::tile) != worth.end();
    const bool is_worth =
        each.seconds <= tolerance * best && each.tasks * seconds_a_task <= share * best;
    if (is_worth && !is_known && worth.size() < most_trials) worth.push_back(each);
    if (worth.empty()) return {};
  }
  if (worth.size() < 2) worth.clear();
  return worth;
}

namespace {

thread_local std::optional<bool> imposed;

/// For the programs of this thread, while it lives.
class Imposed {
 public:
  explicit Imposed(bool pulls) { imposed = pulls; }
  ~Imposed() { imposed.reset(); }
  Imposed(const Imposed&) = delete;
  Imposed& operator=(const Imposed&) = delete;
};

}  // namespace

std::optional<bool> imposed_pulling() { return imposed; }

bool is_sooner_pulled(const Engine& engine, const Problem& problem, std::int64_t tile) {
  constexpr double least_gain = 1.03;
  constexpr double whatever_tasks = std::numeric_limits<double>::infinity();
  const auto seconds = [&](bool pulls) {
    const Imposed for_now(pulls);
    Options options;
    options.tile = tile;
    return estimate(engine, problem, options, whatever_tasks).seconds;
  };
  try {
    return least_gain * seconds(true) < seconds(false);
  } catch (...) {
    return false;
  }
}

bool is_worth_two_trials(double tasks, double seconds) {
  const double share = 1e-2 * static_cast<double>(Config::global().integer("planning_percent"));
  return 2 * tasks * seconds_a_task <= share * seconds;
}

bool can_try(const Engine& engine) {
  return Config::global().text("policy", engine.options().policy) == "affinity";
}

std::int64_t best_by_trial(const Engine& engine, const Problem& problem,
                           const std::vector<TileCandidate>& candidates) {
  TilesInTurn trials(engine, problem, candidates);
  trials.run();
  return trials.best();
}

}  // namespace quadriga::linalg
