// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/event_count_test.cpp: no work waits while all workers sleep, and stop() wakes
// them all.
#include "engine/event_count.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace quadriga {
namespace {

class EventCountTest : public testing::Test {
 protected:
  void work() {
    const auto is_there = [this] { return left_.load() > 0; };
    const auto now = [] { return Nanoseconds{0}; };
    while (true) {
      int seen = left_.load();
      while (seen > 0 && !left_.compare_exchange_weak(seen, seen - 1)) {
      }
      if (seen > 0) {
        ++done_;
      } else if (events_.stopping()) {
        return;
      } else if (!searches_ || !events_.search(is_there, now)) {
        events_.sleep(is_there);
      }
    }
  }
  void await(int count) {
    while (done_ < count) std::this_thread::yield();
  }

  /// Pieces of work that come as soon as the last ones are done.
  void run(int count, bool searches, int rounds) {
    searches_ = searches;
    std::vector<std::thread> workers;
    for (int i = 0; i < count; ++i) workers.emplace_back([this] { work(); });
    int added = 0;
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i <= round % count; ++i, ++added) {
        ++left_;
        events_.added();
      }
      await(added);
    }
    events_.stop();
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(done_, added);
    EXPECT_EQ(events_.sleepers(), 0);
  }

  EventCount events_;
  bool searches_ = true;
  std::atomic<int> left_{0};
  std::atomic<int> done_{0};
};

// A lost wake-up hangs, and the test's time ends it.
TEST_F(EventCountTest, WhoSearchesFindsEachPiece) { run(3, true, 5000); }
TEST_F(EventCountTest, AloneNothingIsMissed) { run(1, false, 50000); }
TEST_F(EventCountTest, WhoFallsAsleepIsWoken) { run(3, false, 5000); }

}  // namespace
}  // namespace quadriga
