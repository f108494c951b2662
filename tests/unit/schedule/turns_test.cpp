// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/turns_test.cpp: devices take turns, round by round, then fill up.
#include "schedule/turns.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace quadriga {
namespace {

/// Three devices that have so many tasks each; what is done is written down: a digit for a task
/// that a device issues, a letter where it fills up.
class TurnsTest : public ::testing::Test {
 protected:
  bool step() {
    return turns_->step(
        [&](std::size_t device) {
          if (tasks_[device] == 0) return false;
          --tasks_[device];
          done_ += static_cast<char>('0' + device);
          return true;
        },
        [&] {
          ++placings_;
          if (unplaced_ == 0) return false;
          --unplaced_;
          ++tasks_[1];
          return true;
        },
        [&](std::size_t device) {
          done_ += static_cast<char>('a' + device);
          if (to_fill_[device] == 0) return false;
          --to_fill_[device];
          return true;
        });
  }
  std::string run() {
    done_.clear();
    turns_->begin();
    while (step()) continue;
    return done_;
  }

  std::optional<Turns> turns_{std::in_place, 3, 0};
  std::vector<int> tasks_{0, 0, 0};
  std::vector<int> to_fill_{0, 0, 0};
  int unplaced_ = 0, placings_ = 0;
  std::string done_;
};

TEST_F(TurnsTest, NothingIsDoneBeforeBegin) {
  tasks_ = {1, 1, 1};
  EXPECT_FALSE(step());
  EXPECT_EQ(done_, "");
}

TEST_F(TurnsTest, EachIssuesOneOfARound) {
  tasks_ = {1, 3, 2};
  EXPECT_EQ(run(), "012121abc");
  EXPECT_FALSE(turns_->has_more());
  EXPECT_FALSE(step()) << "all are settled";
}

TEST_F(TurnsTest, TheNextRoundGoesOnAfterTheLastThatIssued) {
  tasks_ = {1, 1, 0};
  EXPECT_EQ(run(), "01abc");
  tasks_ = {1, 1, 1};
  EXPECT_EQ(run(), "201abc") << "also after other events";
}

TEST_F(TurnsTest, AStepIsOneDecision) {
  tasks_ = {2, 1, 0};
  turns_->begin();
  for (const char* const done : {"0", "01", "010"}) {
    EXPECT_TRUE(step());
    EXPECT_EQ(done_, done);
  }
  EXPECT_FALSE(step());
}

TEST_F(TurnsTest, OnlyWhereNoneIssuedSomethingIsPlaced) {
  tasks_ = {1, 0, 0};
  unplaced_ = 2;
  EXPECT_EQ(run(), "011abc");
  EXPECT_EQ(placings_, 3) << "the last found none";
}

TEST_F(TurnsTest, ADeviceFillsUpUntilItIssuesNothing) {
  to_fill_ = {0, 2, 1};
  EXPECT_EQ(run(), "abbbcc");
}

TEST_F(TurnsTest, RoundsAreLimitedAndLeaveWord) {
  turns_.emplace(3, 2);
  tasks_ = {3, 0, 3};
  EXPECT_EQ(run(), "0202abc");
  EXPECT_TRUE(turns_->has_more());
  EXPECT_EQ(run(), "02abc");
  EXPECT_FALSE(turns_->has_more()) << "the second round found nothing";
}

}  // namespace
}  // namespace quadriga
