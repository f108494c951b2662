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
  Engine engine_{{.devices = "cpu:1"}};
  Waiters waiters_{[this] { return engine_.now(); }};
};

TEST_F(WaitersTest, EndsAtTheDeadline) {
  const Nanoseconds begin = engine_.now();
  EXPECT_FALSE(waiters_.sleep_until([] { return false; }, begin + 20'000'000));
  EXPECT_GE(engine_.now() - begin, 20'000'000);
}

TEST_F(WaitersTest, SeesEachOfManySignals) {
  constexpr int rounds = 2000;
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

TEST_F(WaitersTest, PassesOnWhatItsConditionThrows) {
  const auto broken = []() -> bool { throw std::runtime_error("it broke"); };
  EXPECT_THROW(waiters_.sleep_until(broken, never), std::runtime_error);
  waiters_.signal();  // nobody is left who waits
}

}  // namespace
}  // namespace quadriga
