// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/kernel_history_test.cpp: what is predicted from measurements, and from
// guesses.
#include "schedule/kernel_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "base/random.h"

namespace quadriga {
namespace {

TEST(KernelHistory, MeasuresBeforeItGuesses) {
  TaskHistory tasks;
  EXPECT_EQ(tasks.seconds(DeviceKind::cpu), 0);
  tasks.measured(DeviceKind::cuda, 3);
  EXPECT_EQ(tasks.seconds(DeviceKind::cpu), 3);
  tasks.measured(DeviceKind::cpu, 5);
  EXPECT_EQ(tasks.seconds(DeviceKind::cpu), 5);
  EXPECT_EQ(tasks.seconds(DeviceKind::cuda), 3);
}

TEST(KernelHistory, OneSlowBeginningIsForgotten) {
  TaskHistory tasks;
  tasks.measured(DeviceKind::cuda, 1000);
  tasks.measured(DeviceKind::cuda, 1);
  EXPECT_EQ(tasks.seconds(DeviceKind::cuda), 1);
  for (int i = 0; i < 100; ++i) tasks.measured(DeviceKind::cuda, 2);
  EXPECT_NEAR(tasks.seconds(DeviceKind::cuda), 2, 1e-3);
}

TEST(KernelHistory, WhatOneWasHeldUpCountsLittle) {
  TaskHistory tasks;
  for (int i = 0; i < 10; ++i) tasks.measured(DeviceKind::cpu, 1);
  tasks.measured(DeviceKind::cpu, 1000);
  EXPECT_LT(tasks.seconds(DeviceKind::cpu), 2);
  for (int i = 0; i < 50; ++i) tasks.measured(DeviceKind::cpu, 1000);
  EXPECT_GT(tasks.seconds(DeviceKind::cpu), 900) << "no exception any more";
}

/// One that was measured 500 times too long, anywhere, hardly changes what is believed.
TEST(KernelHistory, OneWrongTimeAmongManyCountsNothing) {
  for (int at = 0; at < 100; ++at) {
    TaskHistory tasks;
    for (int i = 0; i < 100; ++i) {
      tasks.measured(DeviceKind::cpu, (i == at ? 500 : 1) * (1 + 0.01 * (i % 3)));
      if (i > 0) {
        EXPECT_NEAR(tasks.seconds(DeviceKind::cpu), 1, 0.03) << at << ", " << i;
      }
    }
  }
}

/// The mean of the last 15 without those above four medians, sorted anew each time.
double by_definition(std::span<const double> all) {
  std::vector<double> last(all.end() - std::min<std::ptrdiff_t>(15, std::ssize(all)), all.end());
  std::ranges::sort(last);
  const double median = last[(last.size() - 1) / 2];
  if (last.size() <= 2) return median;
  std::erase_if(last, [&](double each) { return each > 4 * median; });
  return std::accumulate(last.begin(), last.end(), 0.0) / static_cast<double>(last.size());
}

TEST(KernelHistory, RandomTimesAreWhatTheDefinitionSays) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    TaskHistory tasks;
    std::vector<double> all;
    for (int i = 0; i < 100; ++i) {
      // Many are alike, some far off.
      const std::uint64_t scale = random.below(4) == 0 ? 100 : 1;
      const auto seconds = static_cast<double>(scale * (1 + random.below(5)));
      all.push_back(seconds);
      tasks.measured(DeviceKind::cuda, seconds);
      ASSERT_DOUBLE_EQ(tasks.seconds(DeviceKind::cuda), by_definition(all))
          << "seed " << seed << ", time " << i;
    }
  }
}

TEST(KernelHistory, TasksOfAClassThatDifferCountByTheirMean) {
  TaskHistory tasks;
  for (int i = 0; i < 60; ++i) tasks.measured(DeviceKind::cpu, i % 3 == 0 ? 2.8 : 1);
  EXPECT_NEAR(tasks.seconds(DeviceKind::cpu), 1.6, 1e-9);
}

TEST(KernelHistory, AfterTasksOfNoTimeOthersCount) {
  TaskHistory tasks;
  for (int i = 0; i < 3; ++i) tasks.measured(DeviceKind::cpu, 0);
  tasks.measured(DeviceKind::cpu, 1);
  EXPECT_EQ(tasks.seconds(DeviceKind::cpu), 1);
}

TEST(KernelHistory, SizesAreApartButForGuesses) {
  const Codelet codelet, other;
  KernelHistory kernel_history;
  TaskHistory& large = kernel_history.of(&codelet, 1 << 20);
  EXPECT_EQ(&kernel_history.of(&codelet, (1 << 21) - 1), &large);
  large.measured(DeviceKind::cuda, 1);
  large.measured(DeviceKind::cpu, 50);
  TaskHistory& small = kernel_history.of(&codelet, 1000);
  EXPECT_EQ(small.seconds(DeviceKind::cuda), 1);
  EXPECT_EQ(small.seconds(DeviceKind::cpu), 50);
  EXPECT_EQ(small.experience(DeviceKind::cpu).ended, 0);
  small.measured(DeviceKind::cpu, 0.5);
  EXPECT_EQ(small.seconds(DeviceKind::cuda), 0.5);
  EXPECT_EQ(large.seconds(DeviceKind::cpu), 50);
  EXPECT_EQ(kernel_history.of(&other, 1000).seconds(DeviceKind::cpu), 0);
}

TEST(KernelHistory, CountsWhatIsUnderWay) {
  TaskHistory tasks;
  for (int i = 0; i < 3; ++i) {
    tasks.chosen();
    tasks.put(DeviceKind::cpu);
  }
  tasks.taken(DeviceKind::cpu);
  tasks.put(DeviceKind::cuda);
  const Experience cuda = tasks.experience(DeviceKind::cuda);
  EXPECT_EQ(cuda.placed, 3);
  EXPECT_EQ(cuda.under_way, 1);
  EXPECT_EQ(cuda.beside, 2);
  EXPECT_EQ(cuda.ended, 0);
}

}  // namespace
}  // namespace quadriga
