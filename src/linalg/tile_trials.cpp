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
#include "base/thread.h"
#include "linalg/estimate.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <utility>

namespace quadriga::linalg {
namespace {

/// Of a program without data, beside others on other cores: `quadriga-bench overhead --case
/// decide-4`, on the machine of docs/benchmarks.md.
constexpr double seconds_a_task = 3e-6;

thread_local std::optional<bool> imposed;

/// For the programs of this thread, while it lives.
class Imposed {
 public:
  explicit Imposed(bool pulls) : before_(std::exchange(imposed, pulls)) {}
  ~Imposed() { imposed = before_; }
  Imposed(const Imposed&) = delete;
  Imposed& operator=(const Imposed&) = delete;

 private:
  std::optional<bool> before_;
};

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

bool may_try(double tasks, double seconds) {
  const double share = 1e-2 * static_cast<double>(Config::global().integer("planning_percent"));
  return tasks * seconds_a_task <= share * seconds;
}

std::vector<double> seconds_by_trial(std::size_t count,
                                     const std::function<double(std::size_t)>& seconds_of) {
  TrialsInTurn trials(count, seconds_of);
  trials.run();
  return trials.seconds();
}

std::vector<TileCandidate> worth_a_trial(std::vector<TileCandidate> found) {
  if (found.empty()) return {};
  std::ranges::stable_sort(found, {}, &TileCandidate::seconds);
  const double best = found.front().seconds;
  std::vector<TileCandidate> worth;
  for (const TileCandidate& each : found) {
    const bool is_known = std::ranges::find(worth, each.tile, &TileCandidate::tile) != worth.end();
    const bool is_worth = each.seconds <= trial_tolerance * best && may_try(each.tasks, best);
    if (is_worth && !is_known && worth.size() < most_trials) worth.push_back(each);
    if (worth.empty()) return {};
  }
  if (worth.size() < 2) worth.clear();
  return worth;
}

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

bool can_try(const Engine& engine) {
  return Config::global().text("policy", engine.options().policy) == "affinity";
}

std::int64_t best_by_trial(const Engine& engine, const Problem& problem,
                           const std::vector<TileCandidate>& candidates) {
  const auto seconds = seconds_by_trial(candidates.size(), [&](std::size_t index) {
    const Imposed with_owners(false);  // Else each of these would try both ways.
    constexpr double whatever_tasks = std::numeric_limits<double>::infinity();
    Options options;
    options.tile = candidates[index].tile;
    return estimate(engine, problem, options, whatever_tasks).seconds;
  });
  const auto least = std::ranges::min_element(seconds);
  return *least < std::numeric_limits<double>::infinity()
             ? candidates[static_cast<std::size_t>(least - seconds.begin())].tile
             : 0;
}

}  // namespace quadriga::linalg
