// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/cancelling_test.cpp: calls of cancel() that go on at once are one to the
// executor, whatever becomes of them.
#include "engine/cancelling.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "unit/engine/parts.h"

namespace quadriga {
namespace {

TEST(CancellingTest, IsSetUntilAllTasksHaveEnded) {
  IdleParts parts;
  double number = 0;
  const TaskRef task = parts.submit(parts.add(&number, 1), Access::write);
  bool was_set = false;
  parts.executor.meanwhile = [&] {
    was_set = parts.executor.cancelled();
    parts.end(task);
  };
  parts.cancelling.all(nullptr);
  EXPECT_TRUE(was_set);
  EXPECT_TRUE(parts.graph.ended(task));
  EXPECT_FALSE(parts.executor.cancelled());
  EXPECT_EQ(parts.told_messages, (std::vector<bool>{true, false}));
}

TEST(CancellingTest, OfCallsAtOnceTheLastEndsIt) {
  IdleParts parts;
  double number = 0;
  const TaskRef task = parts.submit(parts.add(&number, 1), Access::write);
  task.task->children = 1;  // its body cancels what it submitted: nothing
  bool was_set = false;
  parts.executor.meanwhile = [&] {
    parts.cancelling.all(task.task);
    was_set = parts.executor.cancelled();
    parts.end(task);
  };
  parts.cancelling.all(nullptr);
  EXPECT_TRUE(was_set) << "the outer call goes on";
  EXPECT_FALSE(parts.executor.cancelled());
  EXPECT_EQ(parts.told_messages, (std::vector<bool>{true, true, false}));
}

TEST(CancellingTest, IsTakenBackIfTheWaitFails) {
  IdleParts parts;
  double number = 0;
  const TaskRef task = parts.submit(parts.add(&number, 1), Access::write);
  parts.executor.meanwhile = [] { throw std::runtime_error("as asked"); };
  EXPECT_THROW(parts.cancelling.all(nullptr), std::runtime_error);
  EXPECT_FALSE(parts.executor.cancelled());
  parts.executor.meanwhile = [&] { parts.end(task); };
  parts.cancelling.all(nullptr);
  EXPECT_EQ(parts.told_messages, (std::vector<bool>{true, false, true, false}));
}

TEST(CancellingTest, InABodyItWaitsForItsOwnTasksOnly) {
  IdleParts parts;
  double number = 0;
  const TaskRef task = parts.submit(parts.add(&number, 1), Access::write);
  task.task->children = 2;
  int waits = 0;
  parts.executor.meanwhile = [&] {
    ++waits;
    task.task->children = 1;
  };
  parts.cancelling.all(task.task);
  EXPECT_EQ(waits, 1);
  EXPECT_FALSE(parts.graph.ended(task));
  parts.end(task);
}

TEST(CancellingTest, AsksNobodyForFailuresOfWhatItCancelled) {
  IdleParts parts;
  parts.failures.note(std::make_exception_ptr(std::runtime_error("before")));
  parts.cancelling.all(nullptr);
  EXPECT_EQ(parts.failures.take_first(), nullptr);
}

}  // namespace
}  // namespace quadriga
