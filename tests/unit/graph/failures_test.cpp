// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/graph/failures_test.cpp: tasks that fail, what they poison, deadlines and cancelling.
#include <quadriga/engine.h>
#include <sys/mman.h>

#include "unit/engine/engines.h"

namespace quadriga {
namespace {

class FailuresTest : public EngineTest {
 protected:
  FailuresTest()
      : more_(codelet(Access::update, [](const Arguments& a) { first(a) += 1; })),
        fails_(codelet("fails", {Access::update},
                       [](const Arguments&) { throw std::runtime_error("the oven is cold"); })),
        set_(codelet(Access::write, [](const Arguments& a) { first(a) = 7; })),
        copy_(copying()) {}

  Errc code_of(const Future& task) {
    try {
      engine().wait(task, patience);
    } catch (const Error& error) {
      return error.code();
    }
    return Errc::internal;
  }
  std::string failure() {
    return failure_of([&] { wait(); });
  }

  Codelet& more_;
  Codelet& fails_;
  Codelet& set_;
  Codelet& copy_;
};

INSTANTIATE_TEST_SUITE_P(Engine, FailuresTest, every_engine(), where_name);

TEST_P(FailuresTest, WaitNamesTheTaskItsCodeletDeviceAndOperands) {
  const Data data = tile();
  const Future task = engine().submit(fails_, {{data, Access::update}});
  const std::string what = failure();
  for (const std::string& part : {"task " + std::to_string(task.id()), std::string("'fails'"),
                                  std::string("update 8x1 float64"), std::string("cold")})
    EXPECT_NE(what.find(part), std::string::npos) << part << " is missing in: " << what;
  const bool named =
      what.find("cpu") != std::string::npos || what.find("emulated") != std::string::npos;
  EXPECT_TRUE(named) << what;
  EXPECT_EQ(code_of(task), Errc::task_failed);
}

TEST_P(FailuresTest, SuccessorsAreCancelledAndTheOthersFinish) {
  const Data bad = tile(1), good = tile(1), copy = tile(1);
  engine().submit(fails_, {{bad, Access::update}});
  const Future next = engine().submit(more_, {{bad, Access::update}});
  const Future reader = engine().submit(copy_, {{bad, Access::read}, {copy, Access::write}});
  const Future last = engine().submit(more_, {{copy, Access::update}});
  for (int i = 0; i < 5; ++i) engine().submit(more_, {{good, Access::update}});
  EXPECT_NE(failure().find("cold"), std::string::npos);
  EXPECT_EQ(code_of(next), Errc::cancelled);
  EXPECT_EQ(code_of(reader), Errc::cancelled);
  EXPECT_EQ(code_of(last), Errc::cancelled);
  EXPECT_EQ(home(1), 6);
  EXPECT_EQ(engine().counters().failed, 4u);
}

TEST_P(FailuresTest, BodiesOfSuccessorsDontRun) {
  make([](WrappedOptions& options) {
    if (!options.virtual_clock && options.devices != "cpu:2")
      options.devices = "emulated:1,memory=64KiB,streams=3";
  });
  std::atomic<int> ran{0};
  Codelet& fails_after =
      codelet("fails after", {Access::read, Access::update}, [&](const Arguments&) {
        ++ran;
        throw std::runtime_error("the sink is full");
      });
  Codelet& fails_late = codelet("fails late", {Access::update}, [](const Arguments&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // its successors are issued
    throw std::runtime_error("the oven is cold");
  });
  for (int round = 0; round < 20; ++round) {
    const Data bad = tile(1), middle = tile(1), last = tile(1);
    engine().submit(fails_late, {{bad, Access::update}});
    const Future first =
        engine().submit(fails_after, {{bad, Access::read}, {middle, Access::update}});
    const Future second =
        engine().submit(fails_after, {{middle, Access::read}, {last, Access::update}});
    EXPECT_NE(failure().find("cold"), std::string::npos);
    EXPECT_EQ(code_of(first), Errc::cancelled);
    EXPECT_EQ(code_of(second), Errc::cancelled);
    const Data sound = tile(1);
    const Future after = engine().submit(more_, {{sound, Access::update}});
    engine().wait(after, patience);
  }
  EXPECT_EQ(ran, 0);
}

TEST_P(FailuresTest, TheEngineWorksOnAndTellsAFailureOnce) {
  const Data bad = tile(), good = tile();
  engine().submit(fails_, {{bad, Access::update}});
  EXPECT_NE(failure().find("cold"), std::string::npos);
  engine().submit(more_, {{good, Access::update}});
  EXPECT_EQ(failure(), "nothing was thrown");
  EXPECT_EQ(home(1), 1);
}

TEST_P(FailuresTest, WhatDidNotRunForAFailureThatWasToldIsToldToo) {
  const Data data = tile(1);
  engine().submit(fails_, {{data, Access::update}});
  EXPECT_NE(failure().find("cold"), std::string::npos);
  engine().submit(more_, {{data, Access::update}});
  const std::string what = failure();
  EXPECT_NE(what.find("did not run"), std::string::npos) << what;
  EXPECT_NE(what.find("cold"), std::string::npos) << what;
  wait();
}

TEST_P(FailuresTest, LostContentIsRefusedUntilItIsOverwritten) {
  const Data bad = tile();
  engine().submit(fails_, {{bad, Access::update}});
  EXPECT_THROW(wait(), Error);
  EXPECT_THROW(engine().wait(bad, patience), Error);
  EXPECT_EQ(code_of(engine().submit(more_, {{bad, Access::update}})), Errc::cancelled);
  engine().submit(set_, {{bad, Access::write}});
  engine().submit(more_, {{bad, Access::update}});
  engine().wait(bad, patience);
  EXPECT_EQ(home(0), 8);
  failure();
}

TEST_P(FailuresTest, WhatIsOverwrittenBeforeTheFailureIsKnownIsSound) {
  std::vector<Data> data, copies;
  for (int i = 0; i < 20; ++i) data.push_back(tile()), copies.push_back(tile());
  std::vector<Future> before, after;
  for (std::size_t i = 0; i < 20; ++i) {
    engine().submit(fails_, {{data[i], Access::update}});
    before.push_back(engine().submit(copy_, {{data[i], Access::read}, {copies[i], Access::write}}));
    engine().submit(set_, {{data[i], Access::write}});
    after.push_back(engine().submit(more_, {{data[i], Access::update}}));
  }
  EXPECT_NE(failure().find("cold"), std::string::npos);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(code_of(before[i]), Errc::cancelled) << i;
    EXPECT_EQ(code_of(after[i]), Errc::internal) << i << " was cancelled";
    EXPECT_EQ(home(2 * i), 8) << i;
  }
}

TEST_P(FailuresTest, AMemberOfAGroupThatFailsPoisonsTheGroup) {
  for (const Access mode : {Access::commute, Access::reduce}) {
    const Data sum = tile(), copy = tile();
    Codelet& add = codelet(mode, [](const Arguments& a) { first(a) += 1; });
    Codelet& broken = codelet(mode, [](const Arguments&) { throw std::runtime_error("dropped"); });
    for (int i = 0; i < 3; ++i) engine().submit(add, {{sum, mode}});
    engine().submit(broken, {{sum, mode}});
    for (int i = 0; i < 3; ++i) engine().submit(add, {{sum, mode}});
    const Future reader = engine().submit(copy_, {{sum, Access::read}, {copy, Access::write}});
    EXPECT_NE(failure().find("dropped"), std::string::npos);
    EXPECT_EQ(code_of(reader), Errc::cancelled) << name(mode);
  }
}

TEST_P(FailuresTest, NotPositiveDefiniteKeepsItsMinor) {
  const Data data = tile();
  Codelet& factor =
      codelet(Access::update, [](const Arguments&) { throw NotPositiveDefinite(42); });
  engine().submit(factor, {{data, Access::update}});
  try {
    wait();
    FAIL() << "nothing was thrown";
  } catch (const NotPositiveDefinite& error) {
    EXPECT_EQ(error.minor(), 42);
  }
}

TEST_P(FailuresTest, WhatIsntAnExceptionIsReportedToo) {
  const Data data = tile();
  Codelet& odd = codelet(Access::update, [](const Arguments&) { throw 3; });
  engine().submit(odd, {{data, Access::update}});
  EXPECT_NE(failure().find("unknown type"), std::string::npos);
}

TEST_P(FailuresTest, AWaitEndsAtItsDeadlineAndTheWorkGoesOn) {
  if (is_virtual(GetParam())) GTEST_SKIP() << "bodies take no time";
  const Data data = tile();
  const Future task = engine().submit(gate({Access::update}), {{data, Access::update}});
  engine().submit(more_, {{data, Access::update}});
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& wait_for : {std::function<void()>([&] { engine().wait(0.05); }),
                               std::function<void()>([&] { engine().wait(data, 0.05); }),
                               std::function<void()>([&] { engine().wait(task, 0.05); })}) {
    try {
      wait_for();
      ADD_FAILURE() << "the wait returned";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::deadline);
    }
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(passed.count(), 0.15);
  EXPECT_LT(passed.count(), 100);
  EXPECT_FALSE(engine().done(task));
  open();
  wait();
  EXPECT_TRUE(engine().done(task));
  EXPECT_EQ(home(0), 1);
}

TEST_P(FailuresTest, UnderTheVirtualClockDeadlinesAreVirtual) {
  if (!is_virtual(GetParam())) GTEST_SKIP();
  const Data data = tile();
  for (int i = 0; i < 100; ++i) engine().submit(more_, {{data, Access::update}});
  EXPECT_THROW(engine().wait(1e-4), Error);
  EXPECT_EQ(engine().now(), 100'000);
  EXPECT_LT(engine().counters().ended, 100u);
  wait();
  EXPECT_EQ(home(0), 100);
}

TEST_P(FailuresTest, CancelEndsWhatHasNotStarted) {
  const Data data = tile(), other = tile();
  engine().submit(gate({Access::update}), {{data, Access::update}});
  // So long that the last has not started, should the gate open before this thread cancels.
  Codelet& long_one = codelet(Access::update, [](const Arguments&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  });
  std::vector<Future> tasks;
  for (int i = 0; i < 100; ++i)
    tasks.push_back(engine().submit(long_one, {{data, Access::update}}));
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    open();
  });
  engine().cancel();
  opener.join();
  EXPECT_EQ(engine().counters().ended, 101u);
  EXPECT_EQ(code_of(tasks.back()), Errc::cancelled);
  engine().submit(more_, {{other, Access::update}});
  EXPECT_EQ(failure(), "nothing was thrown");
  EXPECT_EQ(home(1), 1);
}

TEST_P(FailuresTest, AfterCancelTheHostReadsAndWritesAsAfterWait) {
  make([](WrappedOptions& options) {
    if (!options.virtual_clock && options.devices != "cpu:2")
      options.devices = "emulated:1,memory=1MiB";
  });
  const Data data = tile();
  engine().wait(engine().submit(more_, {{data, Access::update}}), patience);
  engine().cancel();
  EXPECT_EQ(home(0), 1);
  home_of(0) = 10;
  engine().submit(more_, {{data, Access::update}});
  wait();
  EXPECT_EQ(home(0), 11);
}

TEST_P(FailuresTest, CancelEndsBesideThreadsThatSubmitAndCancel) {
  const Data data = tile(), other = tile();
  std::atomic<bool> ends{false};
  std::vector<std::thread> others;
  others.emplace_back([&] {
    for (int i = 0; i < 300; ++i) engine().submit(set_, {{data, Access::write}});
    ends = true;
  });
  others.emplace_back([&] {
    while (!ends) engine().cancel();
  });
  while (!ends) engine().cancel();
  for (std::thread& each : others) each.join();
  engine().cancel();
  engine().submit(more_, {{other, Access::update}});
  EXPECT_EQ(failure(), "nothing was thrown");
  EXPECT_EQ(home(1), 1);
}

TEST_P(FailuresTest, AnEngineThatIsDroppedEndsItsWork) {
  std::atomic<int> ran{0};
  Codelet& counts = codelet(Access::update, [&](const Arguments&) { ++ran; });
  const Data data = tile();
  for (int i = 0; i < 200; ++i) engine().submit(counts, {{data, Access::update}});
  make([](EngineOptions&) {});
  const int then = ran.load();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(ran.load(), then);
}

TEST_P(FailuresTest, NothingIsCopiedOnceTheEngineIsGone) {
  if (GetParam() != Where::emulated) GTEST_SKIP() << "copies of its own are the emulated device's";
  make([](EngineOptions& options) {
    options.devices = "emulated:1,memory=64MiB,h2d=40MB/s,d2h=40MB/s";
    options.machine.reset();
  });
  constexpr std::size_t bytes = std::size_t{8} << 20;
  void* const home =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(home, MAP_FAILED);
  const Data small = tile();
  const Data large = engine().data(home, bytes / 8, 1, bytes / 8, DType::float64);
  Codelet& fails = codelet(Access::update, [](const Arguments&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    throw std::runtime_error("no");
  });
  Codelet& reads = codelet("reads", {Access::read, Access::update}, [](const Arguments&) {});
  engine().submit(fails, {{small, Access::update}});
  // Fetched ahead, which takes 200 ms, for a task that is cancelled after 20.
  engine().submit(reads, {{large, Access::read}, {small, Access::update}});
  EXPECT_THROW(wait(), std::exception);
  make([](EngineOptions&) {});
  munmap(home, bytes);  // who still read it would end the program
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
}

TEST_P(FailuresTest, WaitForOneDatumBringsThatOneHome) {
  const Data early = tile(), late = tile();
  engine().submit(more_, {{early, Access::update}});
  engine().submit(gate({Access::update}), {{late, Access::update}});
  engine().wait(early, patience);
  EXPECT_EQ(home(0), 1);
  open();
  wait();
}

}  // namespace
}  // namespace quadriga
