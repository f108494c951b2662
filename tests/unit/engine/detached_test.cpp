// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/detached_test.cpp: tasks that are ended from outside, and bodies that block.
#include <quadriga/engine.h>
#include <quadriga/promise.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include "base/random.h"
#include "unit/engine/engines.h"

namespace quadriga {
namespace {

class DetachedTest : public EngineTest {
 protected:
  DetachedTest() : copy_(copying()) {}

  /// Leaves its promise and its operand's address to the test.
  Codelet& detaching(Access access = Access::update) {
    Codelet& made = host_codelet("detaching", {access}, [this](const Arguments& arguments) {
      const std::lock_guard lock(mutex_);
      promises_.push_back(*arguments.promise);
      places_.push_back(arguments.operands[0].as<double>());
    });
    made.detaches = true;
    return made;
  }
  Codelet& blocking(std::vector<Access> signature, Body body) {
    Codelet& made = host_codelet("blocking", std::move(signature), std::move(body));
    made.blocks = true;
    return made;
  }
  /// Waits for the promises of so many bodies; a thread that drives the virtual clock must run.
  void await_promises(std::size_t count) {
    while (true) {
      const std::lock_guard lock(mutex_);
      if (promises_.size() >= count) return;
      std::this_thread::yield();
    }
  }
  /// Keeps the promises as they come: `keep(promise, place)`.
  template <class Keep>
  std::thread keeper(std::size_t count, Keep keep) {
    return std::thread([this, count, keep] {
      for (std::size_t i = 0; i < count; ++i) {
        await_promises(i + 1);
        // Long enough for whoever would not wait.
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        const std::lock_guard lock(mutex_);
        keep(promises_[i], places_[i]);
      }
    });
  }

  Codelet& copy_;
  std::mutex mutex_;  ///< Guards the members below.
  std::vector<Promise> promises_;
  std::vector<double*> places_;
};

INSTANTIATE_TEST_SUITE_P(Engine, DetachedTest, every_engine(), where_name);

TEST_P(DetachedTest, SuccessorsSeeWhatWasWrittenFromOutside) {
  Codelet& detaching = this->detaching();
  const Data x = tile(1), y = tile();
  engine().submit(detaching, {{x, Access::update}});
  engine().submit(copy_, {{x, Access::read}, {y, Access::write}});
  engine().submit(detaching, {{y, Access::update}});
  std::thread keeper = this->keeper(2, [](const Promise& promise, double* place) {
    *place = 10 * *place + 1;
    EXPECT_TRUE(promise.set_value());
    EXPECT_FALSE(promise.set_value());
  });
  wait();
  keeper.join();
  EXPECT_EQ(home(0), 11);
  EXPECT_EQ(home(1), 111);
}

/// Who submits while the window is full runs tasks, of which one waits for the promise.
TEST_P(DetachedTest, APromiseIsKeptWhileASubmitterRunsTheTaskThatWaits) {
  if (GetParam() != Where::host) GTEST_SKIP() << "submitters run no tasks of devices";
  make([](WrappedOptions& options) {
    options.devices = "cpu:1";
    options.window = 2;
  });
  std::atomic<bool> runs = false;
  Codelet& busy = codelet(Access::update, [&](const Arguments&) {
    runs = true;
    while (runs) std::this_thread::yield();
  });
  Codelet& detaching = this->detaching();
  const Data x = tile(1), y = tile(), z = tile();
  Codelet& waiting = codelet(Access::read, [&](const Arguments&) {
    engine().wait(engine().submit(detaching, {{x, Access::update}}), patience);
  });
  waiting.submits = true;
  engine().submit(busy, {{y, Access::update}});
  while (!runs) std::this_thread::yield();
  engine().submit(waiting, {{z, Access::read}});
  std::thread keeper = this->keeper(1, [](const Promise& promise, double* place) {
    *place = 2;
    promise.set_value();
  });
  engine().submit(codelet(Access::read, [](const Arguments&) {}), {{z, Access::read}});
  runs = false;
  EXPECT_EQ(failure_of([&] { wait(); }), "nothing was thrown");
  keeper.join();
  EXPECT_EQ(home(0), 2);
}

TEST_P(DetachedTest, MayEndBeforeItsBody) {
  Codelet& early = host_codelet("early", {Access::write}, [](const Arguments& arguments) {
    first(arguments) = 5;
    arguments.promise->set_value();
  });
  early.detaches = true;
  const Data x = tile(), y = tile();
  for (int i = 0; i < 50; ++i) {
    engine().submit(early, {{x, Access::write}});
    engine().submit(copy_, {{x, Access::read}, {y, Access::write}});
  }
  wait();
  EXPECT_EQ(home(1), 5);
}

TEST_P(DetachedTest, FailuresFromOutsideAreTheTasks) {
  Codelet& detaching = this->detaching();
  const Data x = tile(), y = tile();
  const Future failing = engine().submit(detaching, {{x, Access::update}});
  engine().submit(copy_, {{x, Access::read}, {y, Access::write}});
  std::thread keeper = this->keeper(1, [](const Promise& promise, double*) {
    promise.set_exception(std::make_exception_ptr(std::runtime_error("the line is dead")));
  });
  EXPECT_NE(failure_of([&] { wait(); }).find("the line is dead"), std::string::npos);
  keeper.join();
  EXPECT_NE(failure_of([&] { engine().wait(failing); }).find("the line is dead"),
            std::string::npos);
  EXPECT_EQ(home(1), 0);
}

TEST_P(DetachedTest, DroppedPromisesFail) {
  const Data x = tile();
  Codelet& forgetful = host_codelet("forgetful", {Access::update}, [](const Arguments&) {});
  forgetful.detaches = true;
  engine().submit(forgetful, {{x, Access::update}});
  EXPECT_NE(failure_of([&] { wait(); }).find("promise"), std::string::npos);
}

TEST_P(DetachedTest, WhatABodyThrowsEndsTheTask) {
  const Data x = tile();
  Codelet& throwing =
      host_codelet("throwing", {Access::update}, [this](const Arguments& arguments) {
        promises_.push_back(*arguments.promise);
        throw std::runtime_error("no such line");
      });
  throwing.detaches = true;
  engine().submit(throwing, {{x, Access::update}});
  EXPECT_NE(failure_of([&] { wait(); }).find("no such line"), std::string::npos);
  EXPECT_FALSE(promises_[0].set_value());
}

TEST_P(DetachedTest, HearsThatItIsCancelled) {
  Codelet& detaching = this->detaching();
  const Data x = tile(), y = tile();
  engine().submit(detaching, {{x, Access::update}});
  engine().submit(copy_, {{x, Access::read}, {y, Access::write}});
  std::thread keeper([&] {
    await_promises(1);
    while (!promises_[0].cancelled()) std::this_thread::yield();
    promises_[0].set_value();
  });
  std::thread waiter([&] { failure_of([&] { wait(); }); });  // drives the virtual clock
  await_promises(1);
  engine().cancel();
  keeper.join();
  waiter.join();
  EXPECT_EQ(home(1), 0);
}

TEST_P(DetachedTest, ManyAtOnceInAnyOrder) {
  constexpr std::size_t count = 100;
  Codelet& detaching = this->detaching();
  const Data sum = tile();
  Codelet& add = codelet("add", {Access::read, Access::update},
                         [](const Arguments& a) { first(a, 1) += first(a, 0); });
  for (std::size_t i = 0; i < count; ++i) {
    const Data x = tile();
    engine().submit(detaching, {{x, Access::update}});
    engine().submit(add, {{x, Access::read}, {sum, Access::update}});
  }
  std::thread keeper([&] {
    await_promises(count);
    Random random(3);
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) {
      order[i] = i;
      std::swap(order[i], order[random.below(i + 1)]);
    }
    for (const std::size_t i : order) {
      *places_[i] = 1;
      promises_[i].set_value();
    }
  });
  wait();
  keeper.join();
  EXPECT_EQ(home(0), count);
}

TEST_P(DetachedTest, BlockingBodiesLeaveTheCoresToOthers) {
  if (is_virtual(GetParam())) GTEST_SKIP() << "bodies run one after the other there";
  constexpr int count = 8;  // more than there are cores
  std::latch all_there(count);
  Codelet& block = blocking({Access::write}, [&](const Arguments& arguments) {
    all_there.arrive_and_wait();
    first(arguments) = 1;
  });
  for (int i = 0; i < count; ++i) engine().submit(block, {{tile(), Access::write}});
  wait();
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(home(i), 1);
}

TEST_P(DetachedTest, BlockingBodiesAreTasksLikeOthers) {
  Codelet& next = blocking({Access::update}, [](const Arguments& arguments) {
    first(arguments) += arguments.param<int>();
    if (first(arguments) > 100) throw std::runtime_error("too many");
  });
  const Data x = tile(), y = tile();
  for (int i = 0; i < 10; ++i) engine().submit(next, {{x, Access::update}}, 2);
  engine().submit(copy_, {{x, Access::read}, {y, Access::write}});
  wait();
  EXPECT_EQ(home(1), 20);
  engine().submit(next, {{x, Access::update}}, 200);
  EXPECT_NE(failure_of([&] { wait(); }).find("too many"), std::string::npos);
}

TEST_P(DetachedTest, ALimitOfThreadsIsKept) {
  make([](WrappedOptions& options) { options.blocking_threads = 3; });
  std::atomic<int> running = 0, most = 0;
  Codelet& block = blocking({}, [&](const Arguments&) {
    const int now = ++running;
    int seen = most;
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --running;
  });
  for (int i = 0; i < 20; ++i) engine().submit(block, {});
  wait();
  EXPECT_EQ(most, is_virtual(GetParam()) ? 1 : 3);
}

TEST_P(DetachedTest, WhereBodiesDontRunNobodyWaitsForPromises) {
  if (!is_virtual(GetParam())) GTEST_SKIP() << "bodies run under the real clock";
  make([](WrappedOptions& options) { options.compute = false; });
  const Data x = tile();
  Codelet& block = blocking({Access::update}, [](const Arguments&) {});
  for (int i = 0; i < 3; ++i) {
    engine().submit(detaching(Access::update), {{x, Access::update}});
    engine().submit(block, {{x, Access::update}});
  }
  wait();
  EXPECT_TRUE(promises_.empty());
}

TEST_P(DetachedTest, CodeletsThatCannotDetachAreRefused) {
  Codelet& anywhere = codelet("anywhere", {Access::update}, [](const Arguments&) {});
  anywhere.cuda = nullptr;
  anywhere.detaches = true;
  EXPECT_NE(failure_of([&] {
              engine().submit(anywhere, {{tile(), Access::update}});
            }).find("host_only"),
            std::string::npos);
  Codelet& shared = blocking({Access::commute}, [](const Arguments&) {});
  EXPECT_NE(failure_of([&] {
              engine().submit(shared, {{tile(), Access::commute}});
            }).find("commute"),
            std::string::npos);
}

}  // namespace
}  // namespace quadriga
