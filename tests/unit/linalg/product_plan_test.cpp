// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/product_plan_test.cpp: tiles of products of matrices that lie on one device,
// and what short runs do to those of others.
#include "linalg/product_plan.h"

#include <climits>

#include "unit/linalg/matrices.h"

namespace quadriga::linalg {
namespace {

Machine h200s(int count) {
  return Machine::parse("machine=" QUADRIGA_SOURCE_DIR "/machines/h200x4.json:" +
                        std::to_string(count));
}

Engine engine_of(const Machine& machine) {
  EngineOptions options;
  options.machine = machine;
  options.virtual_clock = true;
  options.compute = false;
  return Engine(options);
}

ProductPlan plan_there(std::int64_t m, std::int64_t n, std::int64_t k) {
  const Engine engine = engine_of(h200s(1));
  return plan_product(engine, team_at(0), {Problem::Kind::matmul, m, n, k, DType::float64}, {});
}

TEST(ProductPlans, WhatLiesOnOneDeviceIsOneProduct) {
  const ProductPlan plan = plan_there(8192, 8192, 8192);
  EXPECT_EQ(plan.rows, 8192);
  EXPECT_EQ(plan.cols, 8192);
  EXPECT_EQ(plan.inner, 8192);
}

TEST(ProductPlans, OfMoreThanKernelsCountItIsSeveral) {
  constexpr std::int64_t tall = 3'000'000'000;
  const ProductPlan down = plan_there(tall, 4, 4);
  EXPECT_GT(down.rows, 1 << 20);
  EXPECT_LE(down.rows, INT_MAX);
  const ProductPlan along = plan_there(4, 4, tall);
  EXPECT_GT(along.inner, 1 << 20);
  EXPECT_LE(along.inner, INT_MAX);
}

// Rows of the tiles of A and C of a product whose operands are on the host.
std::int64_t rows_on(const Machine& machine, std::int64_t order) {
  const Engine engine = engine_of(machine);
  const Problem problem{Problem::Kind::matmul, order, order, order, DType::float64};
  return plan_product(engine, team_of(engine), problem, {}).rows;
}

TEST(ProductPlans, TilesAreTallWhereShortRunsAreSlow) {
  Machine machine = h200s(1);
  EXPECT_EQ(rows_on(machine, 16384), 8192);
  for (Link& link : machine.links) link.runs.clear();
  EXPECT_EQ(rows_on(machine, 16384), 2048) << "all runs are alike";
  for (Link& link : machine.links) link.runs = {{16384, 0.01}, {32768, 1}};
  EXPECT_EQ(rows_on(machine, 16384), 4096) << "32 KiB are enough";
}

TEST(ProductPlans, TheSlowestLinkTellsWhatShortRunsReach) {
  Machine machine = h200s(4);
  Link& slow = machine.links[static_cast<std::size_t>(machine.route(host_space, 3)->links.back())];
  slow.bytes_per_second /= 2;
  slow.runs = {{8192, 0.25}, {65536, 1}};
  const Engine engine = engine_of(machine);
  EXPECT_DOUBLE_EQ(team_of(engine).share_by_runs(8192), 0.25);
  EXPECT_DOUBLE_EQ(team_of(engine).share_by_runs(65536), 1);
}

TEST(ProductPlans, LinksBetweenDevicesAreTakenToBeAsThoseOfTheHost) {
  Machine machine = h200s(2);
  {
    const Engine engine = engine_of(machine);
    EXPECT_DOUBLE_EQ(fed_from(engine, team_of(engine), 0).share_by_runs(8192), 0.59);
  }
  for (const int link : machine.route(1, 2)->links)
    machine.links[static_cast<std::size_t>(link)].runs = {{8192, 0.125}, {65536, 1}};
  const Engine engine = engine_of(machine);
  EXPECT_DOUBLE_EQ(fed_from(engine, team_of(engine), 0).share_by_runs(8192), 0.125);
  EXPECT_DOUBLE_EQ(team_of(engine).share_by_runs(8192), 0.59);
}

}  // namespace
}  // namespace quadriga::linalg
