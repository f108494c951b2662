// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/waits_test.cpp: waits end by what they wait for, at their deadline with the
// state of things, or at once if they would be for the own access.
#include "engine/waits.h"

#include <gtest/gtest.h>

#include "unit/engine/parts.h"

namespace quadriga {
namespace {

TEST(WaitsTest, DeadlinesFollowFromTheExecutorsClock) {
  IdleParts parts;
  EXPECT_EQ(parts.waits.deadline_after(-1), never);
  EXPECT_EQ(parts.waits.deadline_after(0), parts.executor.now());
  EXPECT_EQ(parts.waits.deadline_after(1.5), parts.executor.now() + 1'500'000'000);
}

TEST(WaitsTest, WhatIsLateIsSaidWithTheStateOfThings) {
  IdleParts parts;
  try {
    parts.waits.until([] { return false; }, 0, "the test");
    ADD_FAILURE() << "it ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::deadline);
    EXPECT_NE(std::string(error.what()).find("the test did not end in time"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("as the test left it"), std::string::npos);
  }
}

TEST(WaitsTest, TasksEndMeanwhile) {
  IdleParts parts;
  double number = 0;
  Datum& datum = parts.add(&number, 1);
  const TaskRef first = parts.submit(datum, Access::write);
  const TaskRef second = parts.submit(datum, Access::write);
  parts.executor.meanwhile = [&] {
    parts.end(first);
    parts.end(second);
  };
  const std::vector<TaskRef> both{first, second};
  parts.waits.until_ended(both, never);
  EXPECT_TRUE(parts.graph.ended(second));
}

TEST(WaitsTest, NobodyWaitsForHisOwnAccess) {
  IdleParts parts;
  double number = 0;
  Datum& datum = parts.add(&number, 1);
  const auto hold = parts.holds.hold({{&datum, Access::write}}, never);
  const TaskRef behind = parts.submit(datum, Access::read);
  bool waited = false;
  parts.executor.meanwhile = [&] { waited = true; };
  EXPECT_EQ(code_of([&] { parts.waits.until_ended({&behind, 1}, never); }), Errc::unavailable);
  EXPECT_FALSE(waited);
  parts.holds.end(*hold);
  parts.end(behind);
}

}  // namespace
}  // namespace quadriga
