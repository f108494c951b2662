// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/cholesky_choice_test.cpp: that choices get better from call to call, and what
// stays as it was.
#include "linalg/cholesky_choice.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <quadriga/linalg.h>

#include <set>
#include <string>
#include <vector>

#include "base/config.h"
#include "graph/pulled.h"
#include "linalg/estimate.h"

namespace quadriga::linalg {
namespace {

class CholeskyChoices : public ::testing::Test {
 protected:
  void TearDown() override { Config::global().unset("planning_percent"); }
  static void allow(int percent) {
    Config::global().set("planning_percent", std::to_string(percent));
  }

  /// Of four devices each has a quicker link than the one before.
  static Engine engine_of_uneven(double slower = 1.7) {
    Machine machine =
        Machine::parse(fmt::format("machine={}/machines/h200x4.json:4", QUADRIGA_SOURCE_DIR));
    for (const char* const name : {"pcie0 down", "pcie1 up", "nvlink2 in"})
      for (Link& link : machine.links)
        if (link.name == name) link.bytes_per_second /= slower *= 1.3;
    EngineOptions options;
    options.machine = machine;
    options.virtual_clock = true;
    options.compute = false;
    return Engine(options);
  }
  /// By the virtual clock, on devices of a file of machines.
  static Engine engine_on(const std::string& devices) {
    EngineOptions options;
    options.machine =
        Machine::parse(fmt::format("machine={}/machines/{}", QUADRIGA_SOURCE_DIR, devices));
    options.virtual_clock = true;
    options.compute = false;
    return Engine(options);
  }
  static Problem factorization(std::int64_t order) {
    return {Problem::Kind::cholesky, order, order, order, DType::float64};
  }
  static CholeskyChoice choose(const Engine& engine, std::int64_t order, Asked asked,
                               std::int64_t tile = 0) {
    return choose_cholesky(engine, group_of(engine), factorization(order), tile, Trials::allowed,
                           asked);
  }
};

TEST_F(CholeskyChoices, GetBetterFromCallToCallAndKeepTheTile) {
  allow(4);
  constexpr std::int64_t order = 14001;
  const Engine engine = engine_of_uneven();
  const CholeskyChoice first = choose(engine, order, Asked::by_query);
  ASSERT_GT(first.tile, 0);
  ASSERT_FALSE(first.untried.empty());
  CholeskyChoice last = first;
  for (int call = 0; call < 40; ++call) {
    const CholeskyChoice next = choose(engine, order, Asked::by_call);
    EXPECT_EQ(next.tile, first.tile);
    EXPECT_LE(next.untried.size(), last.untried.size());
    if (last.tried > 0) {
      EXPECT_LE(next.tried, last.tried);
    }
    last = next;
  }
  EXPECT_TRUE(last.untried.empty());
  EXPECT_LT(seconds_by_tile(engine, factorization(order), last.tile, last.places),
            seconds_by_tile(engine, factorization(order), last.tile, group_of(engine).places));
}

/// With cores that compute, one device may leave them tasks, the diagonal above all.
TEST_F(CholeskyChoices, LetOneDevicePullBesideCores) {
  allow(1000);
  constexpr std::int64_t order = 7680;
  Problem problem = factorization(order);
  problem.dtype = DType::float32;
  problem.in_place = true;
  const auto owners = [&](const std::string& cores) {
    const Engine engine = engine_on("idgraf.json:1" + cores);
    return choose_cholesky(engine, group_of(engine), problem, 960, Trials::allowed, Asked::by_call)
        .places;
  };
  EXPECT_EQ(owners(",cpu=on"), PlaceOwners{pulled_owner});
  EXPECT_NE(owners(""), PlaceOwners{pulled_owner});
}

TEST_F(CholeskyChoices, OfAQueryAreThoseOfTheLastCall) {
  allow(4);
  const Engine engine = engine_of_uneven(1.8);
  const std::size_t untried = choose(engine, 11000, Asked::by_query).untried.size();
  ASSERT_GT(untried, 0U);
  EXPECT_EQ(choose(engine, 11000, Asked::by_query).untried.size(), untried);
  std::size_t left = untried;
  for (int call = 0; call < 8; ++call) left = choose(engine, 11000, Asked::by_call).untried.size();
  EXPECT_LT(left, untried);
  EXPECT_EQ(choose(engine, 11000, Asked::by_query).untried.size(), left);
}

TEST_F(CholeskyChoices, TakeThePartOfTheirTimeThatTheSettingSays) {
  constexpr int percent = 3;
  allow(percent);
  const Engine engine = engine_of_uneven(2.1);
  CholeskyChoice choice = choose(engine, 11500, Asked::by_query);
  double spent = 0;
  for (int call = 1; call < 40; ++call) {
    const CholeskyChoice next = choose(engine, 11500, Asked::by_call);
    if (next.untried.size() < choice.untried.size())
      spent += trial_seconds(engine.machine(), next.tasks);
    EXPECT_LE(spent, 1e-2 * percent * (call + 1) * next.foretold) << call;
    choice = next;
  }
  EXPECT_GT(spent, 0);
}

// By a real clock: what trials took is charged, and is what the next ones are taken to cost. How
// many calls pay for a trial depends on how busy the host is.
TEST_F(CholeskyChoices, PayForTrialsWhatTheyTook) {
  allow(60);
  EngineOptions options;
  options.devices =
      fmt::format("machine={}/machines/h200x4.json:4,memory=64MiB", QUADRIGA_SOURCE_DIR);
  const Engine engine(options);
  CholeskyChoice choice = choose(engine, 1500, Asked::by_query);
  ASSERT_GT(choice.tile, 0);
  constexpr int most_calls = 1'000'000;
  int rounds = 0;
  for (int call = 0; rounds < 2 && call < most_calls && !choice.untried.empty(); ++call) {
    const CholeskyChoice next = choose(engine, 1500, Asked::by_call);
    const double paid = choice.saved + 0.6 * next.foretold - next.saved;
    const bool tried = next.untried.size() < choice.untried.size();
    rounds += tried ? 1 : 0;
    if (tried)
      EXPECT_GT(next.price, 0);
    else
      EXPECT_LT(choice.saved + 0.6 * next.foretold,
                2 * std::max(choice.price, trial_seconds(engine.machine(), next.tasks)));
    EXPECT_NEAR(std::remainder(paid, next.price), 0, 1e-9) << call;
    choice = next;
  }
  EXPECT_GT(rounds, 0);
}

TEST_F(CholeskyChoices, OfAnEngineByTheVirtualClockDontComeFromOthers) {
  allow(4);
  constexpr std::int64_t order = 12000;
  const auto left = [&] {
    const Engine engine = engine_of_uneven(2.2);
    std::vector<std::size_t> untried;
    for (int call = 0; call < 8; ++call)
      untried.push_back(choose(engine, order, Asked::by_call).untried.size());
    return untried;
  };
  const std::vector<std::size_t> first = left();
  EXPECT_LT(first.back(), first.front());
  EXPECT_EQ(left(), first);
}

TEST_F(CholeskyChoices, TakeMoreStepsWhereDevicesHaveLittleRoom) {
  CholeskyShape shape{.tiles = 40, .devices = 4, .memory = 1000};
  const double ample = 4 * cholesky_tasks(40);
  EXPECT_EQ(trial_steps(shape), ample);
  shape.memory = 40 * 41 / 2 / 4 + 4 * 40;
  EXPECT_EQ(trial_steps(shape), 4 * ample);
  shape.memory = 40 * 41 / 2 / 4;
  EXPECT_EQ(trial_steps(shape), 8 * ample);
  shape.memory = 10;
  EXPECT_EQ(trial_steps(shape), 8 * ample);
  shape.memory = 0;
  EXPECT_EQ(trial_steps(shape), ample) << "cores";
}

// A trial of 171,700 tasks would take a call ten seconds, however much longer the call itself does.
TEST_F(CholeskyChoices, OfVeryManyTasksAreNotTried) {
  allow(1000);
  const Engine engine = engine_on("h200x4.json:4,memory=420MB");
  const std::uint64_t before = tasks_tried();
  for (int call = 0; call < 2; ++call) {
    const CholeskyChoice choice = choose(engine, 20000, Asked::by_call, 200);
    EXPECT_GT(choice.steps, TrialBudget::most_steps);
    EXPECT_GT(choice.saved, trial_seconds(engine.machine(), choice.tasks)) << "time is left";
    EXPECT_EQ(choice.untried.size(), 24U);
  }
  EXPECT_EQ(tasks_tried(), before);
}

TEST_F(CholeskyChoices, OfAGivenTileAreItsPlaces) {
  allow(50);
  const Engine engine = engine_of_uneven(1.9);
  CholeskyChoice choice;
  for (int call = 0; call < 4; ++call) choice = choose(engine, 10000, Asked::by_call, 1024);
  EXPECT_EQ(choice.tile, 1024);
  EXPECT_TRUE(choice.untried.empty());
  allow(0);
  EXPECT_EQ(choose(engine, 10000, Asked::by_call, 1024).places, group_of(engine).places);
}

TEST_F(CholeskyChoices, OfReproducibleCallsAreThoseOfOneDeviceUntried) {
  Options options;
  options.reproducible = true;
  for (const std::int64_t order : {7000, 9165, 16384}) {
    std::set<std::int64_t> tiles;
    for (const int devices : {1, 2, 4}) {
      allow(devices == 1 ? 0 : 1000);
      const Engine engine = engine_on(fmt::format("h200x4.json:{}", devices));
      tiles.insert(default_tile(engine, factorization(order), options));
      tiles.insert(estimate(engine, factorization(order), options).tile);
    }
    EXPECT_EQ(tiles.size(), 1U) << order;
  }
}

TEST_F(CholeskyChoices, EstimatesAreOfTheChosenPlaces) {
  allow(50);
  constexpr std::int64_t order = 10500;
  const Engine engine = engine_of_uneven(2);
  CholeskyChoice choice;
  for (int call = 0; call < 4; ++call) choice = choose(engine, order, Asked::by_call);
  const Estimate told = estimate(engine, factorization(order));
  EXPECT_EQ(told.tile, choice.tile);
  EXPECT_EQ(told.seconds,
            seconds_by_tile(engine, factorization(order), choice.tile, choice.places));
}

}  // namespace
}  // namespace quadriga::linalg
