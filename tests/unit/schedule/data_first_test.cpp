// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/data_first_test.cpp: which waiting tasks a device gets under the policy
// data-first.
#include <gtest/gtest.h>
#include <quadriga/machine.h>

#include <initializer_list>
#include <limits>
#include <set>
#include <vector>

#include "schedule/policies/built_in.h"

namespace quadriga {
namespace {

using Tasks = std::vector<std::uint64_t>;
constexpr double never = std::numeric_limits<double>::infinity();

OperandView read(std::uint32_t tile, std::size_t bytes = 1000) {
  return {tile, bytes, Access::read};
}
OperandView update(std::uint32_t tile) { return {tile, 1000, Access::update}; }

class DataFirstTest : public testing::Test {
 protected:
  void wait(std::uint64_t id, std::initializer_list<OperandView> operands,
            std::vector<double> seconds = {1, 1}, int priority = 0) {
    const std::vector<OperandView> views(operands);
    policy_->waiting({{.id = id, .codelet = {}, .priority = priority, .operands = views}, seconds});
  }
  Tasks pull(DeviceId device = 0) {
    const std::function<bool(std::uint32_t)> has = [&](std::uint32_t tile) {
      ++asked_;
      return here_.contains(tile);
    };
    Tasks tasks;
    policy_->pull({device, has}, tasks);
    return tasks;
  }

  Machine machine_ = Machine::parse("emulated:2,memory=1MiB");
  std::unique_ptr<Policy> policy_ = make_data_first({machine_});
  std::set<std::uint32_t> here_;
  int asked_ = 0;  ///< How often it was asked whether a tile is here.
};

TEST_F(DataFirstTest, WhatNeedsNothingNewGoesFirst) {
  here_ = {1, 2};
  wait(1, {read(3)});
  wait(2, {read(1), read(2)});
  EXPECT_EQ(pull(), Tasks{2});
  EXPECT_EQ(pull(), Tasks{1});
  EXPECT_EQ(pull(), Tasks{});
}

TEST_F(DataFirstTest, TheTileThatUnlocksMostWorkComesNext) {
  here_ = {1, 2, 3};
  wait(1, {read(1), read(7)});
  wait(2, {read(1), read(8)});
  wait(3, {read(2), read(8)});
  wait(4, {read(5), read(6)});
  wait(5, {read(5), read(4)});
  EXPECT_EQ(pull(), (Tasks{2, 3}));
}

TEST_F(DataFirstTest, WorkCountsByTheBytesThatItNeeds) {
  wait(1, {read(1, 4000)}, {3, 3});
  wait(2, {read(2, 1000)}, {1, 1});
  EXPECT_EQ(pull(), Tasks{2});
}

TEST_F(DataFirstTest, WhatIsUpdatedHasToComeBack) {
  wait(1, {update(1)});
  wait(2, {read(2)});
  EXPECT_EQ(pull(), Tasks{2});
}

TEST_F(DataFirstTest, WhereNoTileUnlocksAnythingTheFewestBytesDo) {
  wait(1, {read(1), read(2), read(3)});
  wait(2, {read(4), read(5)});
  EXPECT_EQ(pull(), Tasks{2});
}

TEST_F(DataFirstTest, TilesOfPulledTasksCountUntilTheyEnd) {
  wait(1, {read(1)});
  ASSERT_EQ(pull(), Tasks{1});
  wait(2, {read(2)});
  wait(3, {read(1)});
  EXPECT_EQ(pull(), Tasks{3});
  policy_->ended(1);
  policy_->ended(3);
  wait(4, {read(1)});
  EXPECT_EQ(pull(), Tasks{2}) << "neither tile is here: the older task goes first";
}

TEST_F(DataFirstTest, HigherPrioritiesGoFirst) {
  wait(1, {read(1)}, {1, 1}, 0);
  wait(2, {read(1)}, {1, 1}, 3);
  wait(3, {read(2)}, {1, 1}, 0);
  EXPECT_EQ(pull(), (Tasks{2, 1}));
}

TEST_F(DataFirstTest, ADeviceGetsItsShareAtMost) {
  for (std::uint64_t id = 1; id <= 10; ++id) wait(id, {read(1)});
  EXPECT_EQ(pull(0).size(), 6u);
  EXPECT_EQ(pull(1).size(), 3u);
}

TEST_F(DataFirstTest, ASlowDeviceLeavesWhatOthersEndBefore) {
  wait(1, {read(1)}, {100, 1});
  EXPECT_EQ(pull(0), Tasks{});
  for (std::uint64_t id = 2; id <= 110; ++id) wait(id, {read(1)}, {100, 1});
  EXPECT_FALSE(pull(0).empty());
}

TEST_F(DataFirstTest, WhatADeviceCannotRunItDoesNotGet) {
  wait(1, {read(1)}, {never, 1});
  EXPECT_EQ(pull(0), Tasks{});
  EXPECT_EQ(pull(1), Tasks{1});
}

TEST_F(DataFirstTest, DevicesThatCanRunNothingTakeNoPart) {
  machine_ = Machine::parse("emulated:3,memory=1MiB");
  policy_ = make_data_first({machine_});
  for (std::uint64_t id = 1; id <= 10; ++id) wait(id, {read(1)}, {never, 1, 1});
  EXPECT_EQ(pull(1).size(), 6u);
  EXPECT_EQ(pull(2).size(), 3u);
}

TEST_F(DataFirstTest, WithoutTheQuickDeviceASlowOneIsNotTooSlow) {
  machine_ = Machine::parse("emulated:3,memory=1MiB");
  policy_ = make_data_first({machine_});
  for (std::uint64_t id = 1; id <= 4; ++id) wait(id, {read(1)}, {100, 100, 1});
  EXPECT_EQ(pull(0), Tasks{});
  for (std::uint64_t id = 1; id <= 4; ++id) wait(id, {read(1)}, {100, 100, never});
  EXPECT_EQ(pull(0), (Tasks{1, 2, 3}));
}

TEST_F(DataFirstTest, WhatIsEvictedBetweenPullsIsMissing) {
  here_ = {1, 2};
  wait(1, {read(5)});
  wait(2, {read(1)});
  wait(3, {read(2), read(5)});
  ASSERT_EQ(pull(), Tasks{2});
  here_ = {};
  EXPECT_EQ(pull(), Tasks{1}) << "the third lacked one tile then, and two now";
}

TEST_F(DataFirstTest, WhatIsMoreUrgentThanAllThatWasSeenIsSeen) {
  for (std::uint32_t id = 1; id <= 1000; ++id) wait(id, {read(1000 + id)});
  ASSERT_EQ(pull(), Tasks{1});
  wait(2000, {read(5000)}, {1, 1}, 7);
  EXPECT_EQ(pull(), Tasks{2000});
}

/// A square of products: each needs its own tile, and one of a row and of a column.
TEST_F(DataFirstTest, APullLooksAtWhatHasChangedHoweverManyWait) {
  constexpr std::uint32_t edge = 60;
  for (std::uint32_t i = 0; i < edge; ++i)
    for (std::uint32_t j = 0; j < edge; ++j)
      wait(1 + i * edge + j, {read(i), read(edge + j), update((2 + i) * edge + j)});
  int pulled = 0;
  while (pulled < 1000) pulled += static_cast<int>(pull().size());
  EXPECT_LT(asked_ / pulled, 60) << "a look at all takes up to three questions for 128 tasks";
}

/// The default passes on what it hears.
TEST_F(DataFirstTest, WhatWasPlacedElsewhereWaitsNoMore) {
  for (const auto& make : {make_data_first, make_affinity}) {
    policy_ = make({machine_});
    wait(1, {read(1)});
    wait(2, {read(2)});
    wait(3, {read(1)});
    policy_->placed(1, 0);
    EXPECT_EQ(pull(0), Tasks{3}) << "its tile comes with what was placed";
    policy_->ended(1);
    policy_->ended(3);
    EXPECT_EQ(pull(0), Tasks{2});
  }
}

TEST_F(DataFirstTest, BeyondManyThatAreTooSlowAreOthers) {
  for (std::uint64_t id = 1; id <= 200; ++id)
    wait(id, {read(static_cast<std::uint32_t>(id))}, {1, never});
  for (std::uint64_t id = 201; id <= 400; ++id) wait(id, {read(static_cast<std::uint32_t>(id))});
  std::size_t first = 0, second = 0;
  for (int i = 0; i < 400; ++i) {
    for (const std::uint64_t id : pull(0)) policy_->ended(id), ++first;
    for (const std::uint64_t id : pull(1)) policy_->ended(id), ++second;
  }
  EXPECT_EQ(first + second, 400);
  EXPECT_GE(second, 100);
}

}  // namespace
}  // namespace quadriga
