// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/endings_test.cpp: what is settled when a task leaves the schedule.
#include "scheduler_parts.h"

namespace quadriga {
namespace {

using EndingsTest = SchedulerPartsTest;

TEST_F(EndingsTest, OperandsAreReleasedBeforeAnybodyIsTold) {
  Datum& a = datum();
  issued({{&a, Access::read}});
  end_copies(in);
  EXPECT_EQ(pins(a), 1u);
  std::size_t at_the_end = 1;
  listener_.on_end = [&] { at_the_end = pins(a); };
  end_kernel();
  EXPECT_EQ(at_the_end, 0u);
  EXPECT_EQ(count("ended"), 1u);
  EXPECT_EQ(count("failed"), 0u);
}

TEST_F(EndingsTest, WhatATaskWroteIsCertainOnceItHasEnded) {
  Datum& a = datum();
  issued({{&a, Access::update}});
  end_copies(in);
  EXPECT_FALSE(memory_.transfers().confirmed(a.tile, 1));
  end_kernel();
  EXPECT_TRUE(memory_.transfers().confirmed(a.tile, 1));
  EXPECT_FALSE(a.poisoned);
}

TEST_F(EndingsTest, WhatAFailedTaskShouldHaveWrittenIsPoisoned) {
  Datum& a = datum();
  issued({{&a, Access::update}});
  end_copies(in);
  end_kernel(0, error(Errc::io));
  EXPECT_TRUE(a.poisoned);
  EXPECT_TRUE(state_.any_failed);
  EXPECT_EQ(count("failed"), 1u);
  EXPECT_EQ(count("ended"), 1u);
}

TEST_F(EndingsTest, ATaskThatWasNeverIssuedReleasesNothing) {
  Datum& a = datum();
  PlannedTask& planned = ready({{&a, Access::write}});
  state_.devices[0].make_head(planned);
  endings_.end(planned, error(Errc::cancelled));
  EXPECT_EQ(pins(a), 0u);
  EXPECT_EQ(state_.devices[0].head, nullptr) << "nothing waits behind it any more";
  EXPECT_TRUE(state_.plan.on(0).ready().empty());
  EXPECT_TRUE(a.poisoned);
}

TEST_F(EndingsTest, ASkippedTaskWroteNothing) {
  Datum& a = datum();
  PlannedTask& planned = ready({{&a, Access::write}});
  planned.enter(TaskState::skipped);
  endings_.end(planned, nullptr);
  EXPECT_FALSE(a.poisoned);
  EXPECT_EQ(count("failed"), 0u);
}

TEST_F(EndingsTest, BodyAndPromiseEndADetachedTaskInEitherOrder) {
  codelet_.detaches = true;
  PlannedTask& late = issued({{&datum(), Access::read}});
  end_copies(in);
  end_kernel();
  EXPECT_EQ(count("ended"), 0u);
  EXPECT_EQ(state_.detached, 1);
  EXPECT_TRUE(endings_.kept(late, nullptr));
  EXPECT_EQ(count("ended"), 1u);
  EXPECT_EQ(state_.detached, 0);

  Datum& b = datum();
  PlannedTask& early = issued({{&b, Access::update}});
  end_copies(in);
  EXPECT_FALSE(endings_.kept(early, error(Errc::io))) << "its body runs";
  EXPECT_EQ(count("ended"), 1u);
  end_kernel();
  EXPECT_EQ(count("ended"), 2u);
  EXPECT_TRUE(b.poisoned) << "its promise has failed";
}

TEST_F(EndingsTest, AFailedBodyWaitsForNoPromise) {
  codelet_.detaches = true;
  issued({{&datum(), Access::read}});
  end_copies(in);
  end_kernel(0, error(Errc::io));
  EXPECT_EQ(count("ended"), 1u);
  EXPECT_EQ(state_.detached, 0);
}

TEST_F(EndingsTest, WhatNoTaskWritesAnyMoreGoesHome) {
  Datum& a = datum();
  a.final = true;
  issued({{&a, Access::update}});
  issued({{&a, Access::update}});
  end_copies(in);
  const auto is_going_home = [&] {
    return std::ranges::any_of(instructions_.pending(), [](const Instruction& each) {
      return each.stream == out && each.ticket > 0;
    });
  };
  end_kernel();
  EXPECT_FALSE(is_going_home()) << "another task still writes it";
  end_kernel();
  EXPECT_TRUE(is_going_home());
}

}  // namespace
}  // namespace quadriga
