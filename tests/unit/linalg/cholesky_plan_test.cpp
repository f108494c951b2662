// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/cholesky_plan_test.cpp: tiles of Cholesky chosen by a machine's figures, beside
// what the virtual clock makes of them.
//
// QUADRIGA_TEST_TIMES=N tries as many times more random machines.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <quadriga/linalg.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/random.h"
#include "linalg/cholesky.h"
#include "linalg/cholesky_schedule.h"
#include "linalg/estimate.h"
#include "sanitized.h"

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

Problem factorization(std::int64_t order) {
  return {Problem::Kind::cholesky, order, order, order, DType::float64};
}

double flops(std::int64_t order) { return std::pow(static_cast<double>(order), 3) / 3; }

/// By the virtual clock, flops a second.
double rate_of(const Machine& machine, std::int64_t order, std::int64_t tile = 0) {
  const Engine engine = engine_of(machine);
  Options options;
  options.tile = tile;
  return flops(order) / estimate(engine, factorization(order), options).seconds;
}

TEST(CholeskyPlans, AreAsGoodAsTheBestOfManyTiles) {
  for (const int devices : {1, 2, 4})
    for (const std::int64_t order : {9937, 16384, 23457}) {
      if (is_sanitized && order != 9937) continue;
      const double planned = rate_of(h200s(devices), order);
      double best = 0;
      for (std::int64_t tile = 512; tile <= 4096; tile += is_sanitized ? 1024 : 256)
        best = std::max(best, rate_of(h200s(devices), order, tile));
      EXPECT_GE(planned, 0.9 * best) << devices << " devices, order " << order;
    }
}

TEST(CholeskyPlans, TimesAreThoseOfTheVirtualClock) {
  const Machine machine = h200s(4);
  const Engine engine = engine_of(machine);
  for (const std::int64_t tile : {704, 1408, 2048, 4096}) {
    constexpr std::int64_t order = 16384;
    const double seconds =
        cholesky_seconds(cholesky_times(engine, group_of(engine), order, tile, DType::float64));
    const double there = flops(order) / rate_of(machine, order, tile);
    EXPECT_NEAR(seconds / there, 1, 0.1) << "tile " << tile;
  }
}

TEST(CholeskyPlans, NothingBeatsTheBoundNorALimit) {
  const Engine engine = engine_of(h200s(2));
  for (const std::int64_t order : {1000, 6000, 20001}) {
    const CholeskyTimes times =
        cholesky_times(engine, group_of(engine), order, 1024, DType::float64);
    const double seconds = cholesky_seconds(times);
    EXPECT_GE(seconds, cholesky_bound(times));
    EXPECT_EQ(cholesky_seconds(times, 1.001 * seconds), seconds);
    EXPECT_TRUE(std::isinf(cholesky_seconds(times, 0.999 * seconds)));
  }
}

TEST(CholeskyPlans, TilesAreMultiplesOfTheGranule) {
  Machine machine = h200s(4);
  for (Device& device : machine.devices) device.granule = 96;
  const Engine engine = engine_of(machine);
  for (const std::int64_t order : {7001, 16384, 40003})
    EXPECT_EQ(default_tile(engine, factorization(order)) % 96, 0) << order;
}

/// Links, kernels and memory drawn around those of H200s.
Machine random_machine(Random& random) {
  const auto factor = [&] { return 0.3 * std::pow(10.0, random.uniform()); };
  Machine machine = h200s(1 + static_cast<int>(random.below(4)));
  for (Link& link : machine.links) link.bytes_per_second *= factor();
  for (auto& [name, columns] : machine.kernels) {
    const double slower = factor();
    for (auto& [column, times] : columns)
      for (auto& [order, seconds] : times) seconds *= slower;
  }
  const double bytes = 1e9 * std::pow(150, random.uniform());
  for (Device& device : machine.devices) device.memory_bytes = static_cast<std::size_t>(bytes);
  return machine;
}

/// Devices that are busy leave to others what waits: list schedules know of no stealing, and tell
/// the virtual clock's times as long as it doesn't make them worse.
TEST(CholeskyPlans, ListSchedulesTellTimesOnUnevenLinks) {
  constexpr int machines = 12;
  Random random(3);
  double logarithms = 0;
  int count = 0;
  for (int i = 0; i < machines; ++i) {
    Machine machine = h200s(4);
    for (Link& link : machine.links)
      link.bytes_per_second *= 0.3 * std::pow(10.0, random.uniform());
    const auto order = static_cast<std::int64_t>(6000 + 6000 * random.uniform());
    const Engine engine = engine_of(machine);
    const DeviceGroup group = group_of(engine);
    for (const std::int64_t tiles : {8, 10, 12}) {
      const std::int64_t tile = group.whole((order + tiles - 1) / tiles);
      const double foretold =
          cholesky_seconds(cholesky_times(engine, group, order, tile, DType::float64));
      const double found = seconds_by_tile(engine, factorization(order), tile, group.places);
      logarithms += std::abs(std::log(found / foretold));
      ++count;
    }
  }
  EXPECT_LE(std::exp(logarithms / count), 1.2);  // 1.235 where busy devices take what waits.
}

/// An order's rate is hardly less than the best of those around it.
TEST(CholeskyPlans, OfOrdersAlikeTakeTimesAlikeOnRandomMachines) {
  constexpr int machines = is_sanitized ? 4 : 24, neighbours = 5;
  const char* const times = std::getenv("QUADRIGA_TEST_TIMES");
  const int count = machines * (times ? std::atoi(times) : 1);
  Random random(11);
  int low = 0;
  double worst = 1;
  for (int i = 0; i < count; ++i) {
    const Machine machine = random_machine(random);
    const double order = 6000 * std::pow(5.0, random.uniform());
    const double rate = rate_of(machine, static_cast<std::int64_t>(order));
    double best = rate;
    for (int n = 0; n < neighbours; ++n) {
      const double near = order * (0.97 + 0.06 * random.uniform());
      best = std::max(best, rate_of(machine, static_cast<std::int64_t>(near)));
    }
    if (rate < 0.95 * best) ++low;
    worst = std::min(worst, rate / best);
  }
  RecordProperty("below_95_percent", low);
  RecordProperty("worst_percent", static_cast<int>(100 * worst));
  fmt::print("{} of {} machines below 0.95 of the best, worst {:.2f}\n", low, count, worst);
  EXPECT_LE(low, count / 2);
  EXPECT_GE(worst, 0.7);
}

}  // namespace
}  // namespace quadriga::linalg
