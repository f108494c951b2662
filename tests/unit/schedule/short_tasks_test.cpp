// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/short_tasks_test.cpp: on which stream a task is queued that waits for another
// one, by what queueing takes on the machine's host.
#include "scheduler_parts.h"

namespace quadriga {
namespace {

class ShortTasksTest : public SchedulerPartsTest {
 protected:
  static constexpr double task_seconds = 10e-6;

  ShortTasksTest() {
    DeviceState& device = state_.devices.front();
    device.streams.push_back({.id = 4, .issued = {}});
    for (ComputeStream& stream : device.streams) state_.owners[stream.id] = {&device, &stream};
  }
  /// Whether the second of two tasks of ten microseconds each stands behind the first.
  bool stands_behind(double queue_seconds, double launch_seconds, bool foretold = true) {
    machine_.planning.task_seconds = queue_seconds;
    machine_.launch_seconds = launch_seconds;
    Datum& changed = datum();
    for (int i = 0; i < 2; ++i) {
      PlannedTask& planned = ready({{&changed, Access::update}});
      state_.plan.unplace(planned);
      planned.learns = false;
      planned.seconds = task_seconds;
      planned.foretold = foretold;
      state_.plan.place(planned, 0);
      state_.plan.make_ready(planned);
      planned.predecessors = Predecessors::issued;
      EXPECT_EQ(launcher_.issue(state_.devices[0], planned).kind, Verdict::Kind::issued);
    }
    const std::vector<ComputeStream>& streams = state_.devices[0].streams;
    EXPECT_EQ(streams[0].issued.size() + streams[1].issued.size(), 2u);
    return streams[0].issued.size() != 1;
  }
};

TEST_F(ShortTasksTest, QueueBehindWhatTheyWaitForWhereQueueingTakesAsLong) {
  EXPECT_TRUE(stands_behind(6e-6, 0));
}

TEST_F(ShortTasksTest, LaunchesCountAsQueueing) { EXPECT_TRUE(stands_behind(1e-6, 5e-6)); }

/// What was learned of them may be how many were seen to end at once.
TEST_F(ShortTasksTest, ThatLearnTheirTimeStandBehindWhatTheyWaitFor) {
  EXPECT_TRUE(stands_behind(2e-6, 1e-6, false));
}

TEST_F(ShortTasksTest, GetAStreamOfTheirOwnWhereAHostQueuesMoreQuickly) {
  EXPECT_FALSE(stands_behind(2e-6, 1e-6));
}

}  // namespace
}  // namespace quadriga
