// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/blocking_threads_test.cpp: how many bodies that block run at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "engine/promises.h"

namespace quadriga {
namespace {

class BlockingThreadsTest : public ::testing::Test {
 protected:
  /// Looks for others at its side for a while.
  void work() {
    const int now = running_.fetch_add(1) + 1;
    {
      const std::lock_guard lock(mutex_);
      most_ = std::max(most_, now);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    running_.fetch_sub(1);
    done_.fetch_add(1);
    done_.notify_all();
  }
  void await(int count) {
    for (int now = done_.load(); now < count; now = done_.load()) done_.wait(now);
  }
  int most() {
    const std::lock_guard lock(mutex_);
    return most_;
  }

 private:
  std::atomic<int> running_{0}, done_{0};
  std::mutex mutex_;
  int most_ = 0;  ///< At once; guarded by mutex_.
};

TEST_F(BlockingThreadsTest, TheLimitHoldsAfterWorkThatWaited) {
  constexpr int rounds = 3;
  int count = 0;
  BlockingThreads threads(1);
  for (int round = 0; round < rounds; ++round) {
    std::atomic<bool> goes{false}, is_over{false};
    threads.run([&] {
      BlockingThreads::leave_place();
      goes.wait(false);
      is_over = true;
      is_over.notify_all();
    });
    for (int i = 0; i < 3; ++i) threads.run([this] { work(); });
    await(count += 3);  // at the side of what waits
    goes = true;
    goes.notify_all();
    is_over.wait(false);
    for (int i = 0; i < 3; ++i) threads.run([this] { work(); });
    await(count += 3);
  }
  EXPECT_EQ(most(), 1);
}

TEST_F(BlockingThreadsTest, AsManyRunAsTheLimitAllows) {
  constexpr int most_at_once = 3;
  std::atomic<int> met{0};
  BlockingThreads threads(most_at_once);
  for (int round = 1; round <= 20; ++round)
    for (int i = 0; i < most_at_once; ++i)
      threads.run([&met, round] {  // waits for the others of its round
        met.fetch_add(1);
        met.notify_all();
        for (int now = met.load(); now < round * most_at_once; now = met.load()) met.wait(now);
      });
  for (int now = met.load(); now < 20 * most_at_once; now = met.load()) met.wait(now);
  EXPECT_EQ(met.load(), 20 * most_at_once);
}

TEST_F(BlockingThreadsTest, EachThatWaitsMakesRoomForOne) {
  std::atomic<bool> goes{false};
  BlockingThreads threads(1);
  for (int i = 0; i < 3; ++i)
    threads.run([&] {
      BlockingThreads::leave_place();
      goes.wait(false);
    });
  threads.run([&] { work(); });
  await(1);  // while three wait
  goes = true;
  goes.notify_all();
}

}  // namespace
}  // namespace quadriga
