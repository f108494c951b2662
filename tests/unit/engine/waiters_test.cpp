// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/waiters_test.cpp: who waits sees what was signalled, ends at the deadline, and
// passes on what its condition throws.
#include "engine/waiters.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "unit/engine/engines.h"

namespace quadriga {
namespace {

/// An executor that is idle: its clock is what is used.
class WaitersTest : public testing::Test {
 protected:
  /// Waits for what another thread signals, round by round.
  void expect_answers(int rounds) {
    std::atomic<int> asked{0}, answered{0};
    std::thread other([&] {
      for (int round = 1; round <= rounds; ++round) {
        while (asked < round) std::this_thread::yield();
        answered = round;
        waiters_.signal();
      }
    });
    for (int round = 1; round <= rounds; ++round) {
      asked = round;
      EXPECT_TRUE(waiters_.sleep_until([&] { return answered >= round; }, never));
    }
    other.join();
  }

  Engine engine_{{.devices = "cpu:1"}};
  Waiters waiters_{[this] { return engine_.now(); }};
};

TEST_F(WaitersTest, EndsAtTheDeadline) {
  const Nanoseconds begin = engine_.now();
  EXPECT_FALSE(waiters_.sleep_until([] { return false; }, begin + 20'000'000));
  EXPECT_GE(engine_.now() - begin, 20'000'000);
}

TEST_F(WaitersTest, SeesEachOfManySignals) { expect_answers(2000); }

/// Waking a thread costs who signals as much as queueing a kernel.
TEST_F(WaitersTest, IsNotWokenForAQuickConditionThatDoesNotHold) {
  constexpr int signals = 3000;
  std::atomic<bool> holds{false};
  std::atomic<int> looked{0};
  std::thread other([&] {
    while (looked < 200) std::this_thread::yield();  // it has given up searching
    for (int i = 0; i < signals; ++i) {
      waiters_.signal();
      const Nanoseconds until = engine_.now() + 10'000;
      while (engine_.now() < until) {
      }
    }
    holds = true;
    waiters_.signal();
  });
  const Waiters::Condition quick = [&] { return holds.load(); };
  const auto condition = [&] { return ++looked > 0 && holds; };
  EXPECT_TRUE(waiters_.sleep_until(condition, never, &quick));
  other.join();
  EXPECT_LT(looked, 200 + signals / 10);
}

TEST_F(WaitersTest, WhoWaitsForAnythingElseIsWokenBesideIt) {
  std::atomic<bool> ends{false};
  const Waiters::Condition quick = [&] { return ends.load(); };
  std::thread sleeper([&] { EXPECT_TRUE(waiters_.sleep_until(quick, never, &quick)); });
  expect_answers(500);
  ends = true;
  waiters_.signal();
  sleeper.join();
}

TEST_F(WaitersTest, PassesOnWhatItsConditionThrows) {
  const auto broken = []() -> bool { throw std::runtime_error("it broke"); };
  EXPECT_THROW(waiters_.sleep_until(broken, never), std::runtime_error);
  waiters_.signal();  // nobody is left who waits
}

}  // namespace
}  // namespace quadriga
