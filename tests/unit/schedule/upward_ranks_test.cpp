// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/upward_ranks_test.cpp: ranks of small graphs, and of long ones that grow.
#include "schedule/policies/upward_ranks.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <limits>
#include <vector>

namespace quadriga {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// Tasks on tiles of 1 MB, which are copied at 1 MB/s after 0.5 s on average.
class UpwardRanksTest : public testing::Test {
 protected:
  void submit(std::uint64_t id, std::vector<double> seconds,
              std::initializer_list<OperandView> operands) {
    const std::vector<OperandView> views(operands);
    TaskView task;
    task.id = id;
    task.operands = views;
    ranks_.submitted({task, seconds});
  }
  static OperandView reads(std::uint32_t tile) { return {tile, 1'000'000, Access::read}; }
  static OperandView writes(std::uint32_t tile) { return {tile, 1'000'000, Access::write}; }
  static OperandView updates(std::uint32_t tile) { return {tile, 1'000'000, Access::update}; }

  UpwardRanks ranks_{0.5, 1e-6};
};

TEST_F(UpwardRanksTest, TheLongerBranchCountsWithItsCopies) {
  submit(1, {1}, {writes(0)});
  submit(2, {2}, {reads(0), writes(1)});
  submit(3, {5}, {reads(0), writes(2)});
  submit(4, {1}, {reads(1), reads(2), writes(3)});
  EXPECT_DOUBLE_EQ(ranks_.rank(4), 1);
  EXPECT_DOUBLE_EQ(ranks_.rank(2), 2 + 1.5 + 1);
  EXPECT_DOUBLE_EQ(ranks_.rank(3), 5 + 1.5 + 1);
  EXPECT_DOUBLE_EQ(ranks_.rank(1), 1 + 1.5 + 7.5);
}

TEST_F(UpwardRanksTest, TimesAreMeansOfDevicesThatCanRunIt) {
  submit(1, {2, never, 4, 0}, {writes(0)});
  EXPECT_DOUBLE_EQ(ranks_.rank(1), 3);
}

TEST_F(UpwardRanksTest, AWriterWaitsForReadersWithoutCopies) {
  submit(1, {1}, {reads(0)});
  submit(2, {1}, {reads(0)});
  submit(3, {4}, {writes(0)});
  EXPECT_DOUBLE_EQ(ranks_.rank(1), 5);
  EXPECT_DOUBLE_EQ(ranks_.rank(2), 5);
}

TEST_F(UpwardRanksTest, WhatHasEndedOrIsUnknownHasNone) {
  submit(1, {1}, {updates(0)});
  submit(2, {1}, {updates(0)});
  ranks_.ended(1);
  ranks_.ended(77);
  EXPECT_EQ(ranks_.rank(1), 0);
  EXPECT_EQ(ranks_.rank(99), 0);
  EXPECT_DOUBLE_EQ(ranks_.rank(2), 1);
}

TEST_F(UpwardRanksTest, AnEighthOfALongChainMayBeMissing) {
  constexpr std::uint64_t tasks = 200'000;
  for (std::uint64_t id = 1; id <= tasks; ++id) {
    submit(id, {1}, {updates(0)});
    ranks_.rank(1);
  }
  EXPECT_GE(ranks_.rank(1), 2.5 * (tasks * 7 / 8 - 1));
  EXPECT_LE(ranks_.rank(1), 2.5 * (tasks - 1) + 1);
}

TEST_F(UpwardRanksTest, EndedTasksLeaveNothingBehindOneThatRunsLong) {
  submit(1, {100}, {updates(9)});
  for (std::uint64_t id = 2; id <= 10'000; ++id) {
    submit(id, {1}, {updates(0)});
    ranks_.ended(id - 1 > 1 ? id - 1 : 0);
  }
  EXPECT_LE(ranks_.places(), 3U);
  submit(20'000, {5}, {updates(9)});
  submit(20'001, {1}, {updates(0)});
  EXPECT_DOUBLE_EQ(ranks_.rank(1), 100 + 1.5 + 5) << "its successor has another's place";
  EXPECT_DOUBLE_EQ(ranks_.rank(10'000), 1 + 1.5 + 1);
}

}  // namespace
}  // namespace quadriga
