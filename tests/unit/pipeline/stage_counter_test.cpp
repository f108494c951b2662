// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/stage_counter_test.cpp: quantiles of latencies beside those of sorted times.
#include "pipeline/stage_counter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace quadriga {
namespace {

TEST(LatencyHistogram, QuantilesAreThoseOfTheTimesToThirteenPercent) {
  Random random(3);
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), 0);
  std::vector<Nanoseconds> times;
  for (int i = 0; i < 10'000; ++i) {
    const auto doublings = static_cast<double>(random.below(36'000)) / 1000;
    times.push_back(static_cast<Nanoseconds>(std::exp2(doublings)));
    histogram.add(times.back());
  }
  std::ranges::sort(times);
  for (const double share : {0.001, 0.1, 0.5, 0.9, 0.99, 1.0}) {
    const auto place = static_cast<std::size_t>(std::ceil(share * 10'000)) - 1;
    const auto exact = static_cast<double>(times[place]) * 1e-9;
    EXPECT_GE(histogram.quantile(share), exact) << share;
    EXPECT_LE(histogram.quantile(share), 1.13 * exact + 2e-9) << share;
  }
}

TEST(LatencyHistogram, TakesAnyTime) {
  LatencyHistogram histogram;
  for (const Nanoseconds time :
       {Nanoseconds{-5}, Nanoseconds{0}, std::numeric_limits<Nanoseconds>::max()})
    histogram.add(time);
  EXPECT_LE(histogram.quantile(0.5), 2e-9);
  EXPECT_GE(histogram.quantile(1.0), 9.2e9);
}

}  // namespace
}  // namespace quadriga
