// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/product_rehearsal_test.cpp: products of several devices as they are rehearsed,
// beside what the virtual clock makes of them.
#include "linalg/product_rehearsal.h"
#include "sanitized.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace quadriga::linalg {
namespace {

Machine h200s(int devices) {
  return Machine::parse(
      fmt::format("machine={}/machines/h200x4.json:{}", QUADRIGA_SOURCE_DIR, devices));
}

Engine engine_of(const Machine& machine) {
  EngineOptions options;
  options.machine = machine;
  options.virtual_clock = true;
  options.compute = false;
  return Engine(options);
}

Problem product_of(std::int64_t order, bool accumulate = false) {
  Problem problem{Problem::Kind::matmul, order, order, order, DType::float64};
  problem.accumulate = accumulate;
  return problem;
}

/// Rehearsed seconds over those of the virtual clock.
double beside_the_clock(const Machine& machine, const Problem& problem) {
  const Engine engine = engine_of(machine);
  const ProductPlan plan = plan_product(engine, group_of(engine), problem, {});
  EXPECT_GT(plan.seconds, 0);
  return plan.seconds / estimate(engine, problem).seconds;
}

double rate(const Machine& machine, std::int64_t order) {
  const Engine engine = engine_of(machine);
  return 2 * std::pow(static_cast<double>(order), 3) / estimate(engine, product_of(order)).seconds;
}

TEST(ProductRehearsal, TimesAreThoseOfTheVirtualClock) {
  for (const int devices : {2, 3, 4})
    for (const std::int64_t order : {6000, 8192, 11111, 16384}) {
      if (is_sanitized && order > 8192) continue;
      for (const bool accumulate : {false, true})
        EXPECT_NEAR(beside_the_clock(h200s(devices), product_of(order, accumulate)), 1, 0.12)
            << devices << " devices, order " << order << ", accumulate " << accumulate;
    }
}

TEST(ProductRehearsal, KnowsLinksOfEachDevice) {
  Machine machine = h200s(4);
  for (const SpaceId space : {SpaceId{1}, SpaceId{3}})
    for (const Route& route : machine.routes)
      if (route.from == host_space && route.to == space)
        machine.links[static_cast<std::size_t>(route.links.back())].bytes_per_second /= 3;
  for (const std::int64_t order : {8192, 16384})
    EXPECT_NEAR(beside_the_clock(machine, product_of(order)), 1, 0.15) << order;
}

TEST(ProductRehearsal, KnowsWhatLoadsAndStoresShare) {
  Machine machine = h200s(4);
  for (Link& link : machine.links)
    if (link.name == "host-memory") link.bytes_per_second /= 3;
  for (const std::int64_t order : {8192, 16384})
    EXPECT_NEAR(beside_the_clock(machine, product_of(order)), 1, 0.15) << order;
}

TEST(ProductRehearsal, EndsBeforeItsLimitOrNever) {
  const Engine engine = engine_of(h200s(4));
  const DeviceGroup group = group_of(engine);
  const Problem problem = product_of(9000);
  const ProductTimes times(engine, group, problem);
  HomeLinks home_links(engine.machine(), group);
  const ProductPlan plan = plan_product(engine, group, problem, {});
  const double seconds = rehearse(times, home_links, problem, plan);
  EXPECT_EQ(rehearse(times, home_links, problem, plan, 1.001 * seconds), seconds);
  EXPECT_TRUE(std::isinf(rehearse(times, home_links, problem, plan, 0.999 * seconds)));
}

/// What one device fetches others get from it, so who asks first decides how loads are shared.
TEST(ProductRehearsal, LetsOddOrdersReachWhatEvenOnesDo) {
  const double low = rate(h200s(4), 4096);
  const double middle = rate(h200s(4), 8192);
  const double high = rate(h200s(4), 16384);
  for (const auto& [order, line] : {std::pair(7383, low + (middle - low) * 3287 / 4096),
                                    std::pair(11111, middle + (high - middle) * 2919 / 8192)})
    EXPECT_GE(rate(h200s(4), order), 0.95 * line) << order;
}

}  // namespace
}  // namespace quadriga::linalg
