// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/product_plan_test.cpp: tiles of products of matrices that lie on one device,
// and what short runs do to those of others.
#include "linalg/product_plan.h"

#include "linalg/call_plan.h"

#include <climits>
#include <map>
#include <random>

#include "base/config.h"
#include "sanitized.h"
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
  return plan_product(engine, group_at(engine, 0), {Problem::Kind::matmul, m, n, k, DType::float64},
                      {});
}

TEST(ProductPlans, WhatLiesOnOneDeviceIsOneProduct) {
  const ProductPlan plan = plan_there(8192, 8192, 8192);
  EXPECT_EQ(plan.rows.tile, 8192);
  EXPECT_EQ(plan.cols.tile, 8192);
  EXPECT_EQ(plan.sum.tile, 8192);
}

TEST(ProductPlans, OfMoreThanKernelsCountItIsSeveral) {
  constexpr std::int64_t tall = 3'000'000'000;
  const ProductPlan down = plan_there(tall, 4, 4);
  EXPECT_GT(down.rows.tile, 1 << 20);
  EXPECT_LE(down.rows.tile, INT_MAX);
  const ProductPlan along = plan_there(4, 4, tall);
  EXPECT_GT(along.sum.tile, 1 << 20);
  EXPECT_LE(along.sum.tile, INT_MAX);
}

// Rows of the tiles of A and C of a product whose operands are on the host.
std::int64_t rows_on(const Machine& machine, std::int64_t order) {
  const Engine engine = engine_of(machine);
  const Problem problem{Problem::Kind::matmul, order, order, order, DType::float64};
  return plan_product(engine, group_of(engine), problem, {}).rows.tile;
}

ProductPlan plan_of(const Machine& machine, std::int64_t m, std::int64_t n, std::int64_t k) {
  const Engine engine = engine_of(machine);
  return plan_product(engine, group_of(engine), {Problem::Kind::matmul, m, n, k, DType::float64},
                      {});
}

/// Each tile of C is one device's, which does all its products, with k ascending.
void expect_complete(const ProductPlan& plan) {
  std::map<std::pair<int, int>, std::pair<std::size_t, int>> next;  // device, k
  for (std::size_t device = 0; device < plan.orders.size(); ++device)
    for (const Product& product : plan.orders[device]) {
      const auto [at, is_new] = next.try_emplace({product.i, product.j}, device, 0);
      ASSERT_EQ(at->second.first, device) << "of " << product.i << ", " << product.j;
      ASSERT_EQ(at->second.second++, product.k);
    }
  ASSERT_EQ(static_cast<std::int64_t>(next.size()), plan.rows.count() * plan.cols.count());
  for (const auto& [tile, done] : next) ASSERT_EQ(done.second, plan.sum.count());
}

void expect_whole(const Tiling& tiling, std::int64_t size) {
  std::int64_t end = 0;
  for (std::int64_t i = 0; i < tiling.count(); ++i) {
    ASSERT_EQ(tiling.first(i), end);
    ASSERT_GT(tiling.length(i), 0);
    ASSERT_LE(tiling.length(i), tiling.tile);
    ASSERT_EQ(tiling.holder(end), i);
    end += tiling.length(i);
  }
  ASSERT_EQ(end, size);
}

TEST(ProductPlans, AreCompleteForAnySizesAndDevices) {
  std::mt19937_64 random(1);
  for (const int devices : {1, 2, 3, 4}) {
    const Machine machine = h200s(devices);
    for (int trial = 0; trial < (is_sanitized ? 3 : 12); ++trial) {
      const auto size = [&] {
        return static_cast<std::int64_t>(1 + random() % (8192 << trial % 3));
      };
      const std::int64_t m = size(), n = size(), k = size();
      SCOPED_TRACE(::testing::Message()
                   << devices << " devices, " << m << " x " << n << " x " << k);
      const ProductPlan plan = plan_of(machine, m, n, k);
      ASSERT_EQ(plan.orders.size(), static_cast<std::size_t>(devices));
      expect_whole(plan.rows, m);
      expect_whole(plan.cols, n);
      expect_whole(plan.sum, k);
      expect_whole(plan.sum_of_b, k);
      expect_complete(plan);
      // No tile of A reaches into two of B.
      for (std::int64_t at = 0; at < plan.sum.count(); ++at) {
        const std::int64_t of_b = plan.sum_of_b.holder(plan.sum.first(at));
        ASSERT_LE(plan.sum.first(at) + plan.sum.length(at),
                  plan.sum_of_b.first(of_b) + plan.sum_of_b.length(of_b));
      }
    }
  }
}

TEST(ProductPlans, DevicesBeginWithOtherRowsAndEndWithNarrowColumns) {
  // As list schedules are; of these, trials may find squares as quick.
  Config::global().set("planning_percent", "0");
  const ProductPlan plan = plan_of(h200s(2), 8192, 8192, 8192);
  Config::global().unset("planning_percent");
  ASSERT_EQ(plan.orders.size(), 2);
  EXPECT_NE(plan.orders[0].front().i, plan.orders[1].front().i);
  for (const std::vector<Product>& order : plan.orders)
    EXPECT_LE(plan.cols.length(order.back().j), plan.cols.tile / 2);
}

TEST(ProductPlans, RepeatThemselvesUntilTheMachineIsAnother) {
  Machine machine = h200s(1);
  const ProductPlan plan = plan_of(machine, 12345, 8192, 8192);
  EXPECT_EQ(plan_of(machine, 12345, 8192, 8192).orders, plan.orders);
  for (auto& [order, seconds] : machine.kernels["dgemm"]["gpu"]) seconds *= 2;
  EXPECT_GT(plan_of(machine, 12345, 8192, 8192).seconds, 1.5 * plan.seconds);
}

TEST(ProductPlans, AreNotThoseOfAMachineThatDiffersBetweenPowersOfTwo) {
  const Machine machine = h200s(1);
  const double seconds = plan_of(machine, 20000, 20000, 20000).seconds;
  Machine quick = machine;
  constexpr double rate = 3.75e13;  // half as much again as beside them
  for (const double order : {1500, 3000})
    quick.kernels["dgemm"]["gpu"][order] = order * order * order / rate;
  EXPECT_LT(plan_of(quick, 20000, 20000, 20000).seconds, seconds);
  Machine slow = machine;
  for (Link& link : slow.links) {
    const Link before = link;
    for (double run = 1024; run < 1e6; run *= 2) {
      link.runs[run] = before.share(run);
      link.runs[1.5 * run] = 0.2 * before.share(1.5 * run);
    }
  }
  EXPECT_GT(plan_of(slow, 20000, 20000, 20000).seconds, seconds);
}

TEST(ProductPlans, SumsAreLongWhereShortOnesAreSlow) {
  Machine machine = h200s(1);
  machine.devices[0].sums.clear();
  const std::int64_t before = plan_of(machine, 8192, 8192, 8192).sum.tile;
  machine.devices[0].sums = {{static_cast<double>(before), 0.3},
                             {4.0 * static_cast<double>(before), 1}};
  EXPECT_GT(plan_of(machine, 8192, 8192, 8192).sum.tile, before);
}

TEST(ProductPlans, TilesAreTallWhereShortRunsAreSlow) {
  Machine machine = h200s(1);
  EXPECT_EQ(rows_on(machine, 16384), 8192);
  for (Link& link : machine.links) link.runs.clear();
  EXPECT_LE(rows_on(machine, 16384), 4096) << "all runs are alike";
  for (Link& link : machine.links) link.runs = {{16384, 0.01}, {32768, 1}};
  EXPECT_EQ(rows_on(machine, 16384), 4096) << "32 KiB are enough";
}

TEST(ProductPlans, TheSlowestLinkTellsWhatShortRunsReach) {
  Machine machine = h200s(4);
  Link& slow = machine.links[static_cast<std::size_t>(machine.route(host_space, 3)->links.back())];
  slow.bytes_per_second /= 2;
  slow.runs = {{8192, 0.25}, {65536, 1}};
  const Engine engine = engine_of(machine);
  EXPECT_DOUBLE_EQ(group_of(engine).share_by_runs(8192), 0.25);
  EXPECT_DOUBLE_EQ(group_of(engine).share_by_runs(65536), 1);
}

TEST(ProductPlans, LinksBetweenDevicesAreTakenToBeAsThoseOfTheHost) {
  Machine machine = h200s(2);
  {
    const Engine engine = engine_of(machine);
    EXPECT_DOUBLE_EQ(fed_from(engine, group_of(engine), 0).share_by_runs(8192), 0.59);
  }
  for (const int link : machine.route(1, 2)->links)
    machine.links[static_cast<std::size_t>(link)].runs = {{8192, 0.125}, {65536, 1}};
  const Engine engine = engine_of(machine);
  EXPECT_DOUBLE_EQ(fed_from(engine, group_of(engine), 0).share_by_runs(8192), 0.125);
  EXPECT_DOUBLE_EQ(group_of(engine).share_by_runs(8192), 0.59);
}

TEST(CallPlans, TilesAreOfTheGranulesThatTheDescriptionGives) {
  for (const int granule : {48, 80, 256}) {
    if (is_sanitized && granule != 80) continue;
    for (const double memory : {1.4e11, 4e9}) {  // Where all fits, and where rows of A stay.
      Machine machine = h200s(2);
      for (Device& device : machine.devices) {
        device.granule = granule;
        device.memory_bytes = static_cast<std::size_t>(memory);
      }
      const Engine engine = engine_of(machine);
      for (const auto kind : {Problem::Kind::matmul, Problem::Kind::cholesky}) {
        SCOPED_TRACE(::testing::Message()
                     << granule << ", " << memory << ", "
                     << (kind == Problem::Kind::matmul ? "product" : "factor"));
        const CallPlan found =
            plan(engine, {kind, 20000, 20000, 20000, DType::float64}, no_device, {});
        for (const Tiling& tiling : {found.rows, found.cols, found.sum, found.sum_of_b}) {
          int others = 0;
          for (std::int64_t i = 0; i < tiling.count(); ++i)
            others += tiling.length(i) % granule != 0;
          EXPECT_LE(others, 1) << "one has what remains";
        }
      }
    }
  }
}

TEST(CallPlans, GiveEachDeviceAnOrderOfItsProducts) {
  for (const double memory : {1.4e11, 4e9, 5e8}) {
    Machine machine = h200s(4);
    for (Device& device : machine.devices) device.memory_bytes = static_cast<std::size_t>(memory);
    const Engine engine = engine_of(machine);
    for (const std::int64_t tile : {0, 512}) {
      Options options;
      options.tile = tile;
      const Problem problem{Problem::Kind::matmul, 9000, 7000, 8000, DType::float64};
      CallPlan found = plan(engine, problem, no_device, options);
      std::vector<ProductOrder> orders = product_orders(engine, found, problem.dtype);
      ASSERT_EQ(orders.size(), 4U);
      found.orders.clear();
      for (ProductOrder& order : orders) {
        found.orders.emplace_back();
        for (Product next; order.next(next);) found.orders.back().push_back(next);
      }
      expect_complete(found);
    }
  }
}

TEST(CallPlans, TellTilesAndWhoComputes) {
  const Engine engine = engine_of(h200s(4));
  const CallPlan product =
      plan(engine, {Problem::Kind::matmul, 8192, 8192, 8192, DType::float64}, no_device, {});
  EXPECT_EQ(product.group.size(), 4);
  EXPECT_EQ(product.orders.size(), 4u);
  EXPECT_EQ(product.triangle.tiles, 0);
  const CallPlan factorization =
      plan(engine, {Problem::Kind::cholesky, 8192, 300, 500, DType::float64}, no_device, {});
  EXPECT_EQ(factorization.group.size(), 4);
  EXPECT_EQ(factorization.triangle.tiles, factorization.rows.count());
  EXPECT_EQ(factorization.triangle.devices, 4);
  EXPECT_EQ(factorization.cols.size, 300);
  EXPECT_EQ(factorization.sum.size, 500);
  EXPECT_EQ(factorization.sum.tile, factorization.rows.tile);
}

TEST(CallPlans, OfWhatLiesOnADeviceAreItsOwnOrFedFromIt) {
  const Engine engine = engine_of(h200s(4));
  const Problem small{Problem::Kind::matmul, 64, 64, 64, DType::float64};
  EXPECT_EQ(plan(engine, small, 2, {}).group.devices, std::vector<DeviceId>{2});
  for (const auto kind : {Problem::Kind::matmul, Problem::Kind::cholesky}) {
    const CallPlan large = plan(engine, {kind, 60000, 60000, 60000, DType::float64}, 2, {});
    EXPECT_EQ(large.group.size(), 4);
    EXPECT_EQ(large.group.home, engine.machine().devices[2].space);
    Options alone;
    alone.reproducible = true;
    const CallPlan same = plan(engine, {kind, 60000, 60000, 60000, DType::float64}, 2, alone);
    EXPECT_EQ(same.group.size(), 1);
  }
}

}  // namespace
}  // namespace quadriga::linalg
