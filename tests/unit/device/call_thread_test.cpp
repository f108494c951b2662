// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/call_thread_test.cpp: calls that wait, and the thread that makes them.
#include "device/call_thread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

namespace quadriga {
namespace {

// Waits for the next end as a driver does: notified, then asking.
class CallThreadTest : public testing::Test {
 protected:
  CallThread::Ended next() {
    while (true) {
      const int seen = notified_.load();
      if (std::optional<CallThread::Ended> ended = calls_.take()) return *ended;
      notified_.wait(seen);
    }
  }

  std::atomic<int> notified_{0};
  CallThread calls_{[this] {
    ++notified_;
    notified_.notify_all();
  }};
};

TEST_F(CallThreadTest, CallsEndInTheirOrderOnOneThread) {
  std::vector<std::thread::id> threads;
  for (std::uint32_t id = 0; id < 100; ++id)
    calls_.add(id, [&threads] { threads.push_back(std::this_thread::get_id()); });
  for (std::uint32_t id = 0; id < 100; ++id) EXPECT_EQ(next().id, id);
  EXPECT_FALSE(calls_.take());
  ASSERT_EQ(threads.size(), 100u);
  EXPECT_EQ(std::ranges::count(threads, threads.front()), 100);
  EXPECT_NE(threads.front(), std::this_thread::get_id());
}

TEST_F(CallThreadTest, WhoAddsACallDoesNotWaitForIt) {
  std::atomic<bool> open{false};
  calls_.add(1, [&open] { open.wait(false); });
  calls_.add(2, [] {});
  EXPECT_FALSE(calls_.take());
  open = true;
  open.notify_all();
  EXPECT_EQ(next().id, 1u);
  EXPECT_EQ(next().id, 2u);
}

TEST_F(CallThreadTest, WhatACallThrowsComesWithItsEnd) {
  calls_.add(7, [] { throw std::runtime_error("no"); });
  calls_.add(8, [] {});
  const CallThread::Ended failed = next();
  EXPECT_EQ(failed.id, 7u);
  EXPECT_THROW(std::rethrow_exception(failed.error), std::runtime_error);
  EXPECT_FALSE(next().error);
}

TEST(CallThreadEnd, WaitsForTheCallThatRunsAndDropsTheOthers) {
  std::atomic<bool> started{false};
  std::atomic<int> ended{0};
  {
    CallThread calls([] {});
    calls.add(1, [&] {
      started = true;
      started.notify_all();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++ended;
    });
    calls.add(2, [&] { ended += 10; });
    started.wait(false);
  }
  EXPECT_EQ(ended, 1);
  const CallThread unused([] {});
}

}  // namespace
}  // namespace quadriga
