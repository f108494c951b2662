// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/virtual_drive_test.cpp: who drives under the virtual clock, and when waiting
// ends. What is driven is a list of steps.
#include "engine/virtual_drive.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace quadriga {
namespace {

using Others = VirtualDrive::Others;

/// So many steps, a nanosecond each.
class VirtualDriveTest : public ::testing::Test {
 protected:
  VirtualDrive::Hooks hooks() {
    return {.step =
                [this](Nanoseconds) {
                  if (throws_) throw Error(Errc::internal, "planted");
                  if (steps_ == 0) return false;
                  --steps_;
                  ++now_;
                  return true;
                },
            .now = [this] { return now_.load(); },
            .others = [this] { return others_.load(); },
            .all_ended = [this] { return all_ended_.load(); },
            .broken =
                [this](std::exception_ptr error) {
                  ++broken_;
                  inbox_.break_down(std::move(error));
                },
            .status = [] { return std::string("one task waits"); }};
  }
  std::string failure(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::internal);
      return error.what();
    }
    return "";
  }

  Inbox inbox_;
  std::atomic<int> steps_{0}, broken_{0};
  std::atomic<Nanoseconds> now_{0};
  std::atomic<Others> others_{Others::nothing};
  std::atomic<bool> all_ended_{true};
  bool throws_ = false;
  VirtualDrive drive_{inbox_, hooks(), 3};
};

TEST_F(VirtualDriveTest, WhoWaitsDrivesUntilItsConditionHolds) {
  steps_ = 10;
  EXPECT_TRUE(drive_.until([&] { return steps_ == 4; }, never));
  EXPECT_EQ(steps_, 4) << "no further";
}

TEST_F(VirtualDriveTest, TimePassesByTheStepsAlone) {
  steps_ = 10;
  EXPECT_FALSE(drive_.until([] { return false; }, 6));
  EXPECT_EQ(now_, 6);
}

TEST_F(VirtualDriveTest, NothingToDriveAndNobodyToWaitForIsAnError) {
  const std::string told = failure([&] { drive_.until([] { return false; }, never); });
  EXPECT_NE(told.find("nothing can run any more"), std::string::npos) << told;
  EXPECT_NE(told.find("one task waits"), std::string::npos) << told;
  EXPECT_NE(failure([&] { drive_.help(); }).find("window"), std::string::npos);
  EXPECT_EQ(broken_, 0) << "others may still drive";
}

TEST_F(VirtualDriveTest, OfOthersToActIsNoDeadlock) {
  for (const Others others : {Others::promises, Others::access}) {
    others_ = others;
    int looked = 0;
    EXPECT_TRUE(drive_.until([&] { return ++looked > 3; }, never));
    drive_.help();
  }
}

TEST_F(VirtualDriveTest, WhoWaitsForOthersLetsThemDrive) {
  others_ = Others::promises;
  std::atomic<bool> is_waiting{false}, has_run{false};
  std::thread other([&] {
    while (!is_waiting) std::this_thread::yield();
    drive_.execute([&] { has_run = true; });
  });
  EXPECT_TRUE(drive_.until(
      [&] {
        is_waiting = true;
        return has_run.load();
      },
      never));
  other.join();
}

TEST_F(VirtualDriveTest, WhileOthersActTheRestOfATimeoutIsRealTime) {
  using Clock = std::chrono::steady_clock;
  others_ = Others::access;
  const Clock::time_point begin = Clock::now();
  EXPECT_FALSE(drive_.until([] { return false; }, 5'000'000));
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(5));
  EXPECT_EQ(now_, 0);
}

TEST_F(VirtualDriveTest, ATaskOnItsWayIsWaitedForAsOftenAsSaid) {
  all_ended_ = false;
  int looked = 0;
  EXPECT_TRUE(drive_.until([&] { return ++looked > 4; }, never)) << "it came in time";
  EXPECT_NE(failure([&] { drive_.until([] { return false; }, never); }), "") << "it never came";
}

TEST_F(VirtualDriveTest, WhatAStepThrowsBreaksItForAll) {
  throws_ = true;
  EXPECT_NE(failure([&] { drive_.until([] { return false; }, never); }).find("planted"),
            std::string::npos);
  EXPECT_EQ(broken_, 1);
  throws_ = false;
  bool has_run = false;
  EXPECT_NE(failure([&] { drive_.execute([&] { has_run = true; }); }).find("planted"),
            std::string::npos);
  EXPECT_FALSE(has_run);
}

TEST_F(VirtualDriveTest, WhatRunsBetweenStepsMayWait) {
  steps_ = 3;
  drive_.execute([&] { EXPECT_TRUE(drive_.until([&] { return steps_ == 0; }, never)); });
}

}  // namespace
}  // namespace quadriga
