// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/product_trials_test.cpp: of products' plans that seem alike the one that is
// quickest by the virtual clock is taken.
#include <gtest/gtest.h>
#include <quadriga/linalg.h>

#include <cmath>
#include <string>

#include "base/config.h"
#include "base/random.h"
#include "linalg/estimate.h"

namespace quadriga::linalg {
namespace {

class ProductTrials : public ::testing::Test {
 protected:
  void TearDown() override { Config::global().unset("planning_percent"); }

  static ProductPlan plan(const Engine& engine, const Problem& problem, int percent) {
    Config::global().set("planning_percent", std::to_string(percent));
    return plan_product(engine, group_of(engine), problem, {});
  }
};

Problem product_of(std::int64_t order) {
  return {Problem::Kind::matmul, order, order, order, DType::float64};
}

/// Four devices whose links run at 0.3 to 3 times what the description says, each at its own.
Machine uneven_machine(Random& random) {
  Machine machine =
      Machine::parse("machine=" QUADRIGA_SOURCE_DIR "/machines/h200x4.json:4,memory=20GB");
  for (Link& link : machine.links) link.bytes_per_second *= 0.3 * std::pow(10.0, random.uniform());
  return machine;
}

Engine engine_of(Machine machine) {
  EngineOptions options;
  options.machine = std::move(machine);
  options.virtual_clock = true;
  options.compute = false;
  return Engine(options);
}

TEST_F(ProductTrials, TakeAPlanThatIsNoSlowerAndSometimesQuicker) {
  Random random(7);
  double gained = 0;
  for (int i = 0; i < 4; ++i) {
    const Engine engine = engine_of(uneven_machine(random));
    const Problem problem = product_of(7000 + static_cast<std::int64_t>(random.below(3000)));
    const double untried = seconds_by_plan(engine, problem, plan(engine, problem, 0));
    const double tried = seconds_by_plan(engine, problem, plan(engine, problem, 1000));
    EXPECT_LE(tried, untried) << "machine " << i;
    gained += untried / tried - 1;
  }
  EXPECT_GT(gained, 0.01);
}

TEST_F(ProductTrials, AreOfThePlanThatTheProductRuns) {
  const Engine engine = engine_of(
      Machine::parse("machine=" QUADRIGA_SOURCE_DIR "/machines/h200x4.json:2,memory=20GB"));
  const Problem problem = product_of(6000);
  const double alone = seconds_by_plan(engine, problem, plan(engine, problem, 10));
  EXPECT_DOUBLE_EQ(estimate(engine, problem).seconds, alone);
}

TEST_F(ProductTrials, ThatTakeTooLongAreNone) {
  const Engine engine = engine_of(
      Machine::parse("machine=" QUADRIGA_SOURCE_DIR "/machines/h200x4.json:2,memory=20GB"));
  // 2 ms, of which a percent is less than a trial of a few products.
  const Problem problem = product_of(3000);
  const ProductPlan untried = plan(engine, problem, 0);
  const ProductPlan tried = plan(engine, problem, 1);
  EXPECT_EQ(tried.rows.tile, untried.rows.tile);
  EXPECT_EQ(tried.cols.tile, untried.cols.tile);
  EXPECT_EQ(tried.orders, untried.orders);
}

}  // namespace
}  // namespace quadriga::linalg
