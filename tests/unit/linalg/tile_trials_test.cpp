// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/tile_trials_test.cpp: which tiles of a factorization are tried, and that what
// is taken is the quickest of them.
#include "linalg/tile_trials.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <quadriga/linalg.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/config.h"
#include "graph/pulled.h"
#include "linalg/device_group.h"
#include "linalg/tile_size.h"

namespace quadriga::linalg {
namespace {

const Machine machine;  // It doesn't say what planning costs.

class TileTrials : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* const key : {"planning_percent", "threads"}) Config::global().unset(key);
  }
  static void allow(int percent) {
    Config::global().set("planning_percent", std::to_string(percent));
  }
};

std::vector<std::int64_t> tiles_of(const std::vector<TileCandidate>& candidates) {
  std::vector<std::int64_t> tiles;
  for (const TileCandidate& each : candidates) tiles.push_back(each.tile);
  return tiles;
}

TEST_F(TileTrials, AreThoseNearTheBestEachOnce) {
  allow(100);
  const auto worth = worth_a_trial(
      machine,
      {{640, 1.1, 1000}, {512, 1.0, 2000}, {640, 1.1, 1000}, {1024, 1.19, 300}, {2048, 1.3, 50}});
  EXPECT_EQ(tiles_of(worth), (std::vector<std::int64_t>{512, 640, 1024}));
}

TEST_F(TileTrials, AreFew) {
  allow(100);
  std::vector<TileCandidate> found;
  for (int i = 0; i < 50; ++i) found.push_back({64 * (50 - i), 1 + 0.001 * i, 10});
  const auto worth = worth_a_trial(machine, found);
  EXPECT_EQ(worth.size(), 8U);
  EXPECT_EQ(worth.front().tile, 64 * 50);
}

TEST_F(TileTrials, TakeAPartOfTheTimeOrAreNone) {
  allow(10);
  const double tasks = 1e4;
  const double seconds = 1.01 * 10 * trial_seconds(machine, tasks);
  const std::vector<TileCandidate> found{
      {512, seconds, tasks}, {640, 1.1 * seconds, tasks / 2}, {768, 1.1 * seconds, tasks / 3}};
  EXPECT_EQ(tiles_of(worth_a_trial(machine, found)), (std::vector<std::int64_t>{512, 640, 768}));
  allow(9);
  EXPECT_EQ(tiles_of(worth_a_trial(machine, found)), (std::vector<std::int64_t>{640, 768}));
  allow(4);
  EXPECT_EQ(tiles_of(worth_a_trial(machine, found)), std::vector<std::int64_t>{768})
      << "it may be better";
  allow(0);
  EXPECT_TRUE(worth_a_trial(machine, {{512, 1e6, 1}, {640, 1e6, 1}}).empty());
  EXPECT_TRUE(worth_a_trial(machine, {}).empty());
  allow(100);
  EXPECT_TRUE(worth_a_trial(machine, {{512, 1, 10}}).empty()) << "nothing to choose from";
}

TEST_F(TileTrials, CostWhatTheDescriptionSays) {
  allow(100);
  Machine slow;
  slow.planning = {1e-3, 1e-4, 1e-6, 1e-5};
  EXPECT_DOUBLE_EQ(trial_seconds(slow, 2000), 0.201);
  const std::vector<TileCandidate> found{{512, 0.1, 2000}, {640, 0.11, 900}};
  EXPECT_EQ(tiles_of(worth_a_trial(machine, found)), (std::vector<std::int64_t>{512, 640}));
  EXPECT_EQ(tiles_of(worth_a_trial(slow, found)), std::vector<std::int64_t>{640});
}

TEST_F(TileTrials, TakeNoMoreTogetherThanTheBudget) {
  allow(100);
  constexpr double part = 0.4 * TrialBudget::most_steps;
  const std::vector<TileCandidate> found{{512, 1.0, 10, part},
                                         {576, 1.01, 10, 2 * part},
                                         {640, 1.02, 10, part},
                                         {704, 1.03, 10, part},
                                         {768, 1.04, 10, part / 2}};
  EXPECT_EQ(tiles_of(worth_a_trial(machine, found)), (std::vector<std::int64_t>{512, 640, 768}));
  TrialBudget rest;
  EXPECT_TRUE(rest.take(1.1 * part));
  EXPECT_TRUE(worth_a_trial(machine, {found[0], found[1]}, rest).empty())
      << "one has nothing to be compared with";
  EXPECT_DOUBLE_EQ(rest.left(), 1.4 * part);
  EXPECT_FALSE(rest.take(2 * part));
}

TEST(PlacesBeside, AreAllOrdersOfFewDevicesEachOnce) {
  EXPECT_TRUE(places_beside({0}, false).empty());
  EXPECT_EQ(places_beside({0, 1}, false), (std::vector<PlaceOwners>{{1, 0}}));
  EXPECT_EQ(places_beside({0, 1, 1}, false).size(), 2U);
  const PlaceOwners four{0, 1, 2, 3};
  const std::vector<PlaceOwners> others = places_beside(four, true);
  EXPECT_EQ(others.size(), 24U);
  EXPECT_EQ(others.front(), PlaceOwners(4, pulled_owner));
  const std::set<PlaceOwners> different(others.begin(), others.end());
  EXPECT_EQ(different.size(), others.size());
  EXPECT_FALSE(different.contains(four));
}

TEST(PlacesBeside, AreSomeOrdersOfMany) {
  const PlaceOwners eight{0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<PlaceOwners> others = places_beside(eight, false);
  EXPECT_EQ(others.size(), 23U);
  for (PlaceOwners places : others) {
    std::ranges::sort(places);
    EXPECT_EQ(places, eight);
  }
  EXPECT_EQ(others, places_beside(eight, false));
}

Machine h200s(int devices) {
  return Machine::parse(
      fmt::format("machine={}/machines/h200x4.json:{}", QUADRIGA_SOURCE_DIR, devices));
}

/// One whose devices have links of unequal rates, on which list schedules foretell badly.
Machine uneven(int devices) {
  Machine machine = h200s(devices);
  double slower = 1;
  for (Link& link : machine.links)
    link.bytes_per_second /= (slower = slower < 3 ? slower + 0.7 : 1);
  return machine;
}

Engine engine_of(const Machine& machine, const std::string& policy = "") {
  EngineOptions options;
  options.machine = machine;
  options.virtual_clock = true;
  options.compute = false;
  options.policy = policy;
  return Engine(options);
}

Problem factorization(std::int64_t order) {
  return {Problem::Kind::cholesky, order, order, order, DType::float64};
}

double seconds(const Machine& machine, std::int64_t order) {
  const Engine engine = engine_of(machine);
  return estimate(engine, factorization(order)).seconds;
}

TEST_F(TileTrials, TakeNothingThatIsSlower) {
  for (const Machine& machine : {h200s(1), h200s(2), uneven(3)})
    for (const std::int64_t order : {5000, 7400, 9165}) {
      allow(0);
      const double foretold = seconds(machine, order);
      allow(1000);
      EXPECT_LE(seconds(machine, order), foretold) << order;
    }
}

TEST_F(TileTrials, FindWhatListSchedulesDont) {
  double gain = 1;
  for (const std::int64_t order : {6100, 7400, 8300, 9165}) {
    allow(0);
    const double foretold = seconds(uneven(4), order);
    allow(1000);
    gain *= foretold / seconds(uneven(4), order);
  }
  EXPECT_GT(gain, 1.02);
}

TEST_F(TileTrials, DontDependOnTheNumberOfCores) {
  const std::vector<TileCandidate> candidates{{512, 1, 1}, {640, 1, 1}, {768, 1, 1}, {1024, 1, 1}};
  const Engine engine = engine_of(uneven(4));
  std::vector<std::int64_t> found;
  for (const char* const cores : {"1", "2", "16"}) {
    Config::global().set("threads", cores);
    found.push_back(
        best_by_trial(engine, factorization(5000), group_of(engine).places, candidates).tile);
  }
  EXPECT_EQ(found, std::vector<std::int64_t>(3, found.front()));
}

TEST_F(TileTrials, TellWhereNoneCouldRun) {
  Machine machine = h200s(2);
  for (Device& device : machine.devices)
    if (device.space != host_space) device.memory_bytes = 1 << 20;
  const Engine engine = engine_of(machine);
  const std::vector<TileCandidate> candidates{{2048, 1, 1}, {4096, 1, 1}};
  const PlaceOwners places = group_of(engine).places;
  EXPECT_EQ(best_by_trial(engine, factorization(4096), places, candidates).tile, 0);
}

TEST_F(TileTrials, AreMadeForTheDefaultPolicyAlone) {
  allow(1000);
  EXPECT_TRUE(can_try(engine_of(h200s(2))));
  EXPECT_FALSE(can_try(engine_of(h200s(2), "steal")));
}

}  // namespace
}  // namespace quadriga::linalg
