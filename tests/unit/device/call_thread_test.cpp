// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/call_thread_test.cpp: calls that wait, and the thread that makes them.
#include "device/call_thread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

namespace quadriga {
namespace {

// Counts ends, and waits for them.
class Ends {
 public:
  void add() {
    ++count_;
    count_.notify_all();
  }
  void wait_for(int wanted) {
    for (int seen = count_; seen < wanted; seen = count_) count_.wait(seen);
  }
  int count() const { return count_; }

 private:
  std::atomic<int> count_{0};
};

TEST(CallThreadTest, CallsAreMadeInTheirOrderOnOneThread) {
  Ends ends;
  std::vector<std::thread::id> threads;
  std::vector<int> order;
  CallThread calls;
  for (int id = 0; id < 100; ++id)
    calls.add([&, id] {
      threads.push_back(std::this_thread::get_id());
      order.push_back(id);
      ends.add();
    });
  ends.wait_for(100);
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_EQ(std::ranges::count(threads, threads.front()), 100);
  EXPECT_NE(threads.front(), std::this_thread::get_id());
}

TEST(CallThreadTest, WhoAddsACallDoesNotWaitForIt) {
  Ends ends;
  std::atomic<bool> open{false};
  CallThread calls;
  calls.add([&] {
    open.wait(false);
    ends.add();
  });
  calls.add([&] { ends.add(); });
  EXPECT_EQ(ends.count(), 0);
  open = true;
  open.notify_all();
  ends.wait_for(2);
}

TEST(CallThreadTest, ThreadsAndCallsMayAddCallsAtOnce) {
  Ends ends;
  CallThread calls;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        for (int k = 0; k < 50; ++k) calls.add([&] { calls.add([&] { ends.add(); }); });
      });
  }
  ends.wait_for(150);
}

TEST(CallThreadTest, ItsEndWaitsForTheCallThatRunsAndDropsTheOthers) {
  std::atomic<bool> started{false};
  std::atomic<int> ended{0};
  {
    CallThread calls;
    calls.add([&] {
      started = true;
      started.notify_all();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      calls.add([&] { ended += 10; });
      ++ended;
    });
    calls.add([&] { ended += 10; });
    started.wait(false);
  }
  EXPECT_EQ(ended, 1);
  const CallThread unused;
}

}  // namespace
}  // namespace quadriga
