// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/placement_test.cpp: where ready tasks go by the tiles that are, or will be,
// on a device.
#include "schedule/pace.h"
#include "scheduler_parts.h"

namespace quadriga {
namespace {

class PlacementTest : public SchedulerPartsTest {
 protected:
  /// Where a task goes that nobody has placed yet.
  DeviceId chosen(std::vector<Operand> operands) {
    PlannedTask& planned = ready(std::move(operands));
    state_.plan.unplace(planned);
    placement_.choose(planned);
    return planned.device;
  }
};

TEST_F(PlacementTest, ATileThatATaskThereUsesIsNotFetchedOnceMore) {
  Datum &a = datum(), &b = datum(), &c = datum();
  ready({{&a, Access::read}}, 1);
  EXPECT_FALSE(memory_.directory().valid(a.tile, state_.devices[1].space)) << "only planned";
  EXPECT_EQ(chosen({{&a, Access::read}, {&c, Access::update}}), 1);
  EXPECT_EQ(chosen({{&b, Access::read}}), 0) << "a tile that nobody uses";
}

TEST_F(PlacementTest, ATileThatOnlyAnEndedTaskUsedIsFetched) {
  Datum &a = datum(), &b = datum();
  issued({{&a, Access::update}}, 1);
  end_copies(5 + in);
  end_kernel(1);
  issued({{&a, Access::update}, {&b, Access::read}}, 0);  // takes the only valid content
  EXPECT_FALSE(memory_.directory().valid(a.tile, state_.devices[1].space));
  EXPECT_EQ(chosen({{&a, Access::read}}), 0);
}

TEST_F(PlacementTest, WhatMustStayIsTakenByNobody) {
  for (int i = 0; i < 100; ++i) ready({}, 0, true);
  EXPECT_EQ(state_.plan.on(0).ready_to_move(), 0u);
  EXPECT_FALSE(placement_.steal(state_.devices[1]));
  PlannedTask& loose = ready({}, 0);
  EXPECT_EQ(state_.plan.on(0).ready_to_move(), 1u);
  state_.plan.validate();
  EXPECT_TRUE(placement_.steal(state_.devices[1])) << "it stands behind those that stay";
  EXPECT_EQ(loose.device, 1);
  EXPECT_EQ(state_.plan.on(0).ready_to_move(), 0u);
  EXPECT_EQ(state_.plan.on(1).ready_to_move(), 1u);
  state_.plan.validate();
}

TEST_F(PlacementTest, ALookAtWhatMustStayHasAnEnd) {
  for (std::size_t i = 0; i < 4 * pace::most_looked; ++i) ready({}, 0, true);
  ready({}, 0);
  EXPECT_TRUE(placement_.steal(state_.devices[1]));
  ready({}, 0, true);
  ready({}, 0);
  EXPECT_FALSE(placement_.steal(state_.devices[1])) << "one more stands before it";
}

}  // namespace
}  // namespace quadriga
