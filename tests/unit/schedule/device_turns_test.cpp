// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/device_turns_test.cpp: which task a device issues, and when it is asked.
#include "scheduler_parts.h"

namespace quadriga {
namespace {

class DeviceTurnsTest : public SchedulerPartsTest {
 protected:
  /// Decides until nothing is left.
  void decide() {
    turns_.begin();
    while (turns_.step()) continue;
  }
  /// The first device has nobody who takes its tasks.
  void leave_alone() { state_.devices[1].lost = true; }
  int in_flight(DeviceId device = 0) const { return state_.devices[device].issued; }
};

TEST_F(DeviceTurnsTest, OnlyWhoWasTouchedIsAsked) {
  leave_alone();
  issued({{&datum(), Access::read}});
  ready({{&datum(), Access::read}});
  decide();
  EXPECT_EQ(in_flight(), 1) << "nothing has happened to it";
  state_.devices[0].touched = true;
  decide();
  EXPECT_EQ(in_flight(), 2);
}

TEST_F(DeviceTurnsTest, AnIdleDeviceLooksAroundEachTime) {
  ready({{&datum(), Access::read}});
  ready({{&datum(), Access::read}}, 1);
  decide();
  EXPECT_EQ(in_flight(0), 1);
  EXPECT_EQ(in_flight(1), 1);
}

TEST_F(DeviceTurnsTest, NothingPassesATaskThatWaitsForRoom) {
  leave_alone();
  Datum &a = datum(), &b = datum(), &c = datum();
  issued({{&a, Access::read}, {&b, Access::read}, {&c, Access::read}});
  end_copies(in);
  const PlannedTask& large = ready({{&datum(), Access::read}, {&datum(), Access::read}});
  ready({{&a, Access::read}});  // there is room for it
  state_.devices[0].touched = true;
  decide();
  EXPECT_EQ(in_flight(), 1);
  EXPECT_EQ(state_.devices[0].head, &large);
  state_.plan.reposition(ready({{&a, Access::read}}), 0);
  state_.devices[0].touched = true;
  decide();
  EXPECT_EQ(in_flight(), 1) << "not even what comes before it in the plan";
  end_kernel();
  decide();
  EXPECT_GT(in_flight(), 0);
  EXPECT_TRUE(large.is_among(issued_states));
  EXPECT_EQ(state_.devices[0].head, nullptr);
}

TEST_F(DeviceTurnsTest, ALostDeviceGetsNothing) {
  ready({{&datum(), Access::read}});
  state_.devices[0].lost = true;
  decide();
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(DeviceTurnsTest, CancelledTasksEndInTheirTurn) {
  ready({{&datum(), Access::read}});
  state_.cancelled = true;
  decide();
  EXPECT_EQ(in_flight(), 0);
  EXPECT_EQ(listener_.told, (std::vector<std::string>{"failed", "ended"}));
}

TEST_F(DeviceTurnsTest, AnIdleDeviceTakesWhatAnotherHasQueued) {
  Datum& a = datum();
  for (int i = 0; i < 40; ++i) ready({{&a, Access::read}});
  decide();
  EXPECT_GT(in_flight(1), 0);
}

TEST_F(DeviceTurnsTest, WhoFindsNoHostBufferFailsOnceNothingIsInFlight) {
  EXPECT_FALSE(turns_.resolve_standstill()) << "nobody waits";
  PlannedTask& planned = ready({{&datum(), Access::read}});
  state_.devices[0].make_head(planned);
  EXPECT_FALSE(turns_.resolve_standstill()) << "it waits for room on its device";
  state_.devices[0].lacks_buffer = true;
  EXPECT_TRUE(turns_.resolve_standstill());
  EXPECT_EQ(listener_.told, (std::vector<std::string>{"failed", "ended"}));
  EXPECT_EQ(state_.devices[0].head, nullptr);
}

}  // namespace
}  // namespace quadriga
