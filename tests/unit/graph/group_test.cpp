// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/graph/group_test.cpp: tasks of one call fail and are cancelled apart from others'.
#include "graph/group.h"

#include <quadriga/engine.h>

#include <atomic>
#include <memory>

#include "unit/engine/engines.h"

namespace quadriga {
namespace {

class TaskGroupTest : public EngineTest {
 protected:
  TaskGroupTest()
      : more_(codelet(Access::update, [](const Arguments& a) { first(a) += 1; })),
        fails_(codelet("fails", {Access::update},
                       [](const Arguments&) { throw std::runtime_error("the oven is cold"); })),
        copy_(copying()) {}

  void submit(const Codelet& codelet, std::initializer_list<Operand> operands, TaskGroup& group) {
    EngineAccess::submit(engine(), codelet, operands, {}, {}, &group);
  }
  std::string failure(TaskGroup& group, std::span<const Data> data) {
    return failure_of([&] { EngineAccess::wait(engine(), group, data, patience); });
  }

  Codelet& more_;
  Codelet& fails_;
  Codelet& copy_;
};

TEST_P(TaskGroupTest, FailuresAreTheirGroups) {
  const Data a = tile(), b = tile(), c = tile(), d = tile(1);
  TaskGroup unlucky, lucky;
  submit(fails_, {{a, Access::update}}, unlucky);
  submit(copy_, {{a, Access::read}, {b, Access::write}}, unlucky);
  submit(more_, {{c, Access::update}}, lucky);
  engine().submit(more_, {{d, Access::update}});
  EXPECT_EQ(failure(lucky, std::span(&c, 1)), "nothing was thrown");
  EXPECT_EQ(home(2), 1);
  wait();  // what isn't in the group doesn't hear of it
  EXPECT_EQ(home(3), 2);
  EXPECT_NE(failure(unlucky, std::span(&b, 1)).find("the oven is cold"), std::string::npos);
  EXPECT_TRUE(EngineAccess::failure_of(engine(), unlucky));
  EXPECT_FALSE(EngineAccess::failure_of(engine(), lucky));
}

TEST_P(TaskGroupTest, WhatReadsLostContentFails) {
  const Data a = tile(), b = tile();
  engine().submit(fails_, {{a, Access::update}});
  TaskGroup group;
  submit(copy_, {{a, Access::read}, {b, Access::write}}, group);
  EXPECT_NE(failure(group, std::span(&b, 1)).find("the oven is cold"), std::string::npos);
  EXPECT_THROW(wait(), Error);
}

TEST_P(TaskGroupTest, CancellingOneLeavesTheOthers) {
  const Data x = tile(1), y = tile(), z = tile();
  engine().submit(gate({Access::update}), {{x, Access::update}});
  TaskGroup group;
  submit(copy_, {{x, Access::read}, {y, Access::write}}, group);
  engine().submit(copy_, {{x, Access::read}, {z, Access::write}});
  std::thread canceller([&] { EngineAccess::cancel(engine(), group); });
  while (!group.cancelled.load()) std::this_thread::yield();
  open();
  canceller.join();
  EXPECT_TRUE(group.all_ended());
  wait();
  EXPECT_EQ(home(1), 0);
  EXPECT_EQ(home(2), 1);
  EXPECT_NE(failure(group, {}).find("cancelled"), std::string::npos);
}

TEST_P(TaskGroupTest, ToldOnceThatAllHaveEnded) {
  const Data x = tile(), y = tile();
  engine().submit(gate({Access::update}), {{x, Access::update}});
  std::atomic<int> told = 0;
  TaskGroup group;
  group.on_end = [&] { ++told; };
  for (int i = 0; i < 20; ++i) submit(more_, {{i % 2 ? x : y, Access::update}}, group);
  EXPECT_EQ(told, 0);
  group.close();
  open();
  wait();
  while (told == 0) std::this_thread::yield();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(home(0), 10);
}

TEST_P(TaskGroupTest, WithoutATaskClosingTells) {
  int told = 0;
  TaskGroup group;
  group.on_end = [&] { ++told; };
  group.close();
  EXPECT_EQ(told, 1);
}

TEST_P(TaskGroupTest, MayGoWhenItIsTold) {
  const Data x = tile();
  std::atomic<int> gone = 0;
  constexpr int count = 200;
  for (int i = 0; i < count; ++i) {
    auto* const group = new TaskGroup;
    group->on_end = [&gone, group] {
      const std::unique_ptr<TaskGroup> owned(group);
      ++gone;
    };
    for (int task = 0; task < 3; ++task) submit(more_, {{x, Access::update}}, *group);
    if (i % 3 == 0) submit(fails_, {{tile(), Access::update}}, *group);
    group->close();
  }
  wait();
  while (gone < count) std::this_thread::yield();
  EXPECT_EQ(home(0), 3 * count);
}

TEST_P(TaskGroupTest, CancellingInsideOfATaskDoesNotWaitForIt) {
  const Data x = tile();
  bool refused = false;
  Codelet& cancels = codelet("cancels", {Access::update}, [&](const Arguments& a) {
    try {
      engine().cancel();
    } catch (const Error& error) {
      refused = error.code() == Errc::unavailable;
    }
    first(a) = 3;
  });
  engine().submit(cancels, {{x, Access::update}});
  wait();
  EXPECT_EQ(home(0), 3);
  EXPECT_EQ(refused, GetParam() != Where::host);
  engine().submit(more_, {{x, Access::update}});
  wait();
  EXPECT_EQ(home(0), 4);
}

INSTANTIATE_TEST_SUITE_P(Engines, TaskGroupTest, every_engine(), where_name);

}  // namespace
}  // namespace quadriga
