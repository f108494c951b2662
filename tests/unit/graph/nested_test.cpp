// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/graph/nested_test.cpp: tasks that submit tasks, and the window of submitted tasks.
#include <quadriga/engine.h>

#include "unit/engine/engines.h"

namespace quadriga {
namespace {

class NestedTest : public EngineTest {
 protected:
  /// A task that submits others; the engine lives longer than it.
  Codelet& parent(std::vector<Access> signature, Body body) {
    Codelet& made = codelet("parent", std::move(signature), std::move(body));
    made.submits = true;
    return made;
  }
};

INSTANTIATE_TEST_SUITE_P(Engine, NestedTest, every_engine(), where_name);

TEST_P(NestedTest, SuccessorsWaitForTheLastChild) {
  const Data data = tile(1), seen = tile();
  Codelet& child = codelet(Access::update, [](const Arguments& a) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    first(a) += 1;
  });
  Codelet& divided = parent({Access::update}, [&](const Arguments&) {
    for (int i = 0; i < 10; ++i) engine().submit(child, {{data, Access::update}});
  });
  Codelet& copy = copying();
  engine().submit(divided, {{data, Access::update}});
  engine().submit(copy, {{data, Access::read}, {seen, Access::write}});
  wait();
  EXPECT_EQ(home(1), 11);
}

TEST_P(NestedTest, ChildrenAreOrderedAmongThemselves) {
  const Data data = tile(0), other = tile(0);
  Codelet& twice = codelet(Access::update, [](const Arguments& a) { first(a) = first(a) * 2 + 1; });
  Codelet& add = codelet("add", {Access::read, Access::update},
                         [](const Arguments& a) { first(a, 1) += first(a, 0); });
  Codelet& divided = parent({Access::update, Access::update}, [&](const Arguments&) {
    for (int i = 0; i < 5; ++i) engine().submit(twice, {{data, Access::update}});
    engine().submit(add, {{data, Access::read}, {other, Access::update}});
    engine().submit(twice, {{other, Access::update}});
  });
  engine().submit(divided, {{data, Access::update}, {other, Access::update}});
  wait();
  EXPECT_EQ(home(0), 31);
  EXPECT_EQ(home(1), 63);
}

TEST_P(NestedTest, GrandchildrenCountAsWell) {
  const Data data = tile(0), seen = tile();
  Codelet& leaf = codelet(Access::commute, [](const Arguments& a) { first(a) += 1; });
  Codelet& middle = parent({Access::commute}, [&](const Arguments&) {
    for (int i = 0; i < 4; ++i) engine().submit(leaf, {{data, Access::commute}});
  });
  Codelet& top = parent({Access::update}, [&](const Arguments&) {
    for (int i = 0; i < 4; ++i) engine().submit(middle, {{data, Access::commute}});
  });
  Codelet& copy = copying();
  engine().submit(top, {{data, Access::update}});
  engine().submit(copy, {{data, Access::read}, {seen, Access::write}});
  wait();
  EXPECT_EQ(home(1), 16);
}

TEST_P(NestedTest, SubmittingIsDeclared) {
  const Data data = tile();
  Codelet& child = codelet(Access::update, [](const Arguments&) {});
  Codelet& silent = codelet(Access::update, [&](const Arguments&) {
    engine().submit(child, {{data, Access::update}});
  });
  engine().submit(silent, {{data, Access::update}});
  try {
    wait();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::task_failed);
    EXPECT_NE(std::string(error.what()).find("submits"), std::string::npos) << error.what();
  }
}

TEST_P(NestedTest, AFailedChildPoisonsWhatTheParentWrote) {
  const Data data = tile(1), seen = tile(5);
  Codelet& child =
      codelet(Access::update, [](const Arguments&) { throw std::runtime_error("no"); });
  Codelet& divided = parent({Access::write}, [&](const Arguments& a) {
    first(a) = 2;
    engine().submit(child, {{data, Access::update}});
  });
  Codelet& copy = copying();
  engine().submit(divided, {{data, Access::write}});
  const Future last = engine().submit(copy, {{data, Access::read}, {seen, Access::write}});
  EXPECT_THROW(wait(), Error);
  try {
    engine().wait(last, patience);
    FAIL() << "the reader should have been cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::cancelled);
  }
}

TEST_P(NestedTest, ATaskMaySubmitMoreTasksThanTheWindowHolds) {
  make([](EngineOptions& options) { options.window = 16; });
  const Data data = tile(0), seen = tile();
  Codelet& child = codelet(Access::commute, [](const Arguments& a) { first(a) += 1; });
  Codelet& divided = parent({Access::update}, [&](const Arguments&) {
    for (int i = 0; i < 500; ++i) engine().submit(child, {{data, Access::commute}});
  });
  Codelet& copy = copying();
  engine().submit(divided, {{data, Access::update}});
  engine().submit(copy, {{data, Access::read}, {seen, Access::write}});
  wait();
  EXPECT_EQ(home(1), 500);
}

// The thread sanitizer sees whether the wait orders the write before the read.
TEST_P(NestedTest, WhatATaskWroteIsSeenOnceAnotherThreadsTaskHasItsSlot) {
  make([](EngineOptions& options) { options.window = 16; });
  Codelet& more = codelet(Access::update, [](const Arguments& a) { first(a) += 1; });
  const Data data = tile(), other = tile();
  Codelet& divided = parent({Access::update}, [&](const Arguments&) {
    for (int i = 0; i < 40; ++i) engine().submit(more, {{other, Access::update}});
  });
  for (int round = 1; round <= 50; ++round) {
    engine().submit(more, {{data, Access::update}});
    engine().submit(divided, {{other, Access::update}});
    engine().wait(data, patience);
    EXPECT_EQ(home(0), round);
  }
  wait();
  EXPECT_EQ(home(1), 50 * 40);
}

TEST_P(NestedTest, TheWindowBoundsWhatIsSubmittedAndNotEnded) {
  constexpr std::size_t window = 32;
  make([](EngineOptions& options) { options.window = window; });
  if (is_virtual(GetParam())) GTEST_SKIP() << "tasks run only while somebody waits";
  const Data data = tile();
  Codelet& task = codelet(Access::update, [](const Arguments&) {});
  std::atomic<std::size_t> submitted{0};
  std::thread submitter([&] {
    engine().submit(gate({Access::update}), {{data, Access::update}});
    for (std::size_t i = 0; i < 4 * window; ++i) {
      engine().submit(task, {{data, Access::update}});
      ++submitted;
    }
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(240);
  while (submitted.load() < window / 2 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GE(submitted.load(), window / 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LE(submitted.load(), window);
  open();
  submitter.join();
  wait();
  EXPECT_EQ(engine().counters().ended, 4 * window + 1);
}

TEST_P(NestedTest, ManyThreadsSubmit) {
  std::vector<Data> data;
  for (int i = 0; i < 4; ++i) data.push_back(tile());
  Codelet& add = codelet(Access::update, [](const Arguments& a) { first(a) += 1; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < 500; ++i) engine().submit(add, {{data[i % 4], Access::update}});
    });
  for (std::thread& thread : threads) thread.join();
  wait();
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(home(i), 500);
}

}  // namespace
}  // namespace quadriga
