// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/graph/after_test.cpp: tasks that follow others whatever they touch.
#include <quadriga/engine.h>

#include <atomic>
#include <vector>

#include "graph/failures.h"
#include "unit/engine/engines.h"

namespace quadriga {
namespace {

class AfterTest : public EngineTest {
 protected:
  Codelet& noting() {
    return codelet("note", {Access::update}, [this](const Arguments& arguments) {
      const int number = arguments.param<int>();
      if (!is_virtual(GetParam()) && number == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      last_.store(number);
    });
  }
  Errc code_of(const Future& task) {
    try {
      engine().wait(task, patience);
    } catch (const Error& error) {
      return error.code();
    }
    return Errc::internal;
  }

  std::atomic<int> last_ = -1;
};

INSTANTIATE_TEST_SUITE_P(Engine, AfterTest, every_engine(), where_name);

TEST_P(AfterTest, BeginsOnceTheOthersHaveEnded) {
  Codelet& note = noting();
  std::atomic<int> seen = -1;
  Codelet& look = codelet("look", {Access::update}, [&](const Arguments&) { seen = last_.load(); });
  for (int round = 0; round < 20; ++round) {
    std::vector<Future> first;
    for (int i = 0; i < 3; ++i)
      first.push_back(engine().submit(note, {{tile(), Access::update}}, i));
    last_ = -1;
    const Future slow = engine().submit(note, {{tile(), Access::update}}, 0, {.after = first});
    engine().submit(look, {{tile(), Access::update}}, {.after = std::span(&slow, 1)});
    wait();
    EXPECT_EQ(seen, 0) << round;
  }
}

TEST_P(AfterTest, FollowsWhatHasEndedAndItsOwnDataAtOnce) {
  Codelet& more = codelet(Access::update, [](const Arguments& a) { first(a) += 1; });
  const Data x = tile();
  const Future ended = engine().submit(more, {{x, Access::update}});
  wait();
  Future last = ended;
  for (int i = 0; i < 100; ++i)
    last = engine().submit(more, {{x, Access::update}}, {.after = std::span(&last, 1)});
  wait();
  EXPECT_EQ(home(0), 101);
}

TEST_P(AfterTest, FailuresOfTheOthersDontConcernIt) {
  Codelet& fails = codelet("fails", {Access::update},
                           [](const Arguments&) { throw std::runtime_error("no more bread"); });
  Codelet& more = codelet(Access::update, [](const Arguments& a) { first(a) += 1; });
  const Future failed = engine().submit(fails, {{tile(), Access::update}});
  engine().submit(more, {{tile(), Access::update}}, {.after = std::span(&failed, 1)});
  EXPECT_NE(failure_of([&] { wait(); }).find("no more bread"), std::string::npos);
  EXPECT_EQ(home(1), 1);
}

TEST_P(AfterTest, OneThatLacksAResultIsCancelledAndNamesWhatFailedFirst) {
  Codelet& fails = codelet("fails", {Access::update},
                           [](const Arguments&) { throw std::runtime_error("no more bread"); });
  Codelet& lacks = codelet("lacks", {Access::update},
                           [](const Arguments& a) { throw LacksResult(a.param<std::uint64_t>()); });
  Codelet& more = codelet(Access::update, [](const Arguments& a) { first(a) += 1; });
  const Data bad = tile(), other = tile();
  engine().submit(fails, {{bad, Access::update}});
  const Future second = engine().submit(more, {{bad, Access::update}});
  const Future third = engine().submit(lacks, {{other, Access::update}}, second.id(),
                                       {.after = std::span(&second, 1)});
  const Future fourth = engine().submit(more, {{other, Access::update}});
  for (const Future& each : {second, third, fourth}) {
    EXPECT_EQ(code_of(each), Errc::cancelled);
    const std::string what = failure_of([&] { engine().wait(each, patience); });
    EXPECT_NE(what.find("task 1 'fails'"), std::string::npos) << what;
    EXPECT_NE(what.find("no more bread"), std::string::npos) << what;
    EXPECT_NE(what.find("did not run"), std::string::npos) << what;
  }
  EXPECT_NE(failure_of([&] { wait(); }).find("task 1 'fails'"), std::string::npos);
  wait();
}

TEST_P(AfterTest, MoreFailuresThanAreKeptAreFailuresAllTheSame) {
  Codelet& fails = codelet("fails", {Access::read},
                           [](const Arguments&) { throw std::runtime_error("no more bread"); });
  Codelet& more = codelet(Access::update, [](const Arguments& a) { first(a) += 1; });
  const Data read = tile(), bad = tile();
  Codelet& spoils = codelet("spoils", {Access::update},
                            [](const Arguments&) { throw std::runtime_error("it rained"); });
  const Future first = engine().submit(spoils, {{bad, Access::update}});
  const Future second = engine().submit(more, {{bad, Access::update}});
  // Failed before any other does: several cores run them.
  EXPECT_NE(failure_of([&] { engine().wait(first, patience); }).find("it rained"),
            std::string::npos);
  for (int i = 0; i < 5000; ++i) engine().submit(fails, {{read, Access::read}});
  const Future good = engine().submit(more, {{tile(), Access::update}});
  EXPECT_NE(failure_of([&] { wait(); }).find("it rained"), std::string::npos);
  EXPECT_EQ(code_of(first), Errc::task_failed);
  EXPECT_EQ(code_of(second), Errc::cancelled);
  EXPECT_EQ(code_of(good), Errc::internal);
}

TEST_P(AfterTest, InsideOfATaskWhatMayWaitForItIsRefused) {
  if (is_virtual(GetParam())) GTEST_SKIP() << "a body there can't wait for the program";
  std::atomic<bool> told = false;
  Future around, later;
  std::string own, behind;
  Codelet& more = codelet("more", {}, [](const Arguments&) {});
  Codelet& parent = codelet("parent", {Access::update}, [&](const Arguments&) {
    while (!told.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto follow = [&](const Future& task) {
      return engine().submit(more, {}, {.after = std::span(&task, 1)});
    };
    own = failure_of([&] { follow(around); });
    behind = failure_of([&] { follow(later); });
    follow(follow(engine().submit(more, {})));
  });
  parent.submits = true;
  parent.host_only = true;
  const Data x = tile();
  around = engine().submit(parent, {{x, Access::update}});
  later = engine().submit(codelet(Access::update, [](const Arguments&) {}), {{x, Access::update}});
  told = true;
  wait();
  EXPECT_NE(own.find("can't follow task 1, which may wait for it"), std::string::npos) << own;
  EXPECT_NE(behind.find("can't follow task 2, which may wait for it"), std::string::npos) << behind;
}

}  // namespace
}  // namespace quadriga
