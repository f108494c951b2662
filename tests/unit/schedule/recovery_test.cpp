// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/recovery_test.cpp: what failures and lost devices do to contents and to tasks
// in flight.
#include "scheduler_parts.h"

namespace quadriga {
namespace {

class RecoveryTest : public SchedulerPartsTest {
 protected:
  /// What a scheduler does first when it hears of it by the end of a task, if by one.
  void lose(DeviceId device, const PlannedTask* ending = nullptr) {
    recovery_.set_aside(state_.devices[device], error(Errc::device_lost), ending);
  }
  /// The oldest task of a device is no longer in flight.
  PlannedTask& taken(DeviceId device = 0) {
    ComputeStream& stream = state_.devices[device].streams.front();
    PlannedTask& planned = *stream.issued.front().second;
    Launcher::ended(state_.devices[device], stream, planned);
    state_.instructions.ended(planned.done);
    return planned;
  }
};

TEST_F(RecoveryTest, WhoReadsWhatAFailedTaskShouldHaveWrittenFailsToo) {
  Datum &a = datum(), &b = datum();
  issued({{&a, Access::update}});
  const PlannedTask& reader = issued({{&a, Access::read}, {&b, Access::update}});
  end_copies(in);
  end_kernel(0, error(Errc::io));
  EXPECT_TRUE(reader.poisoned);
  end_kernel();  // its body has seen nothing of it
  EXPECT_EQ(count("failed"), 2u);
  EXPECT_TRUE(b.poisoned);
}

TEST_F(RecoveryTest, WhatWasOverwrittenSinceIsNotPoisoned) {
  Datum& a = datum();
  issued({{&a, Access::update}});
  issued({{&a, Access::write}});
  end_copies(in);
  end_kernel(0, error(Errc::io));
  EXPECT_FALSE(a.poisoned);
  end_kernel();
  EXPECT_EQ(count("failed"), 1u);
  EXPECT_TRUE(memory_.transfers().confirmed(a.tile, 1));
}

TEST_F(RecoveryTest, AWriteBackIsTriedFourTimes) {
  Datum& a = datum();
  issued({{&a, Access::update}});
  end_copies(in);
  end_kernel();
  ASSERT_TRUE(memory_.evictor().send_home(a.tile, Reason::write_back));
  for (int tries = 1; tries < 4; ++tries) {
    end_copies(out, error(Errc::io));
    EXPECT_EQ(count("content lost"), 0u) << tries;
  }
  end_copies(out, error(Errc::io));
  EXPECT_EQ(count("content lost"), 1u);
  EXPECT_TRUE(a.poisoned);
}

TEST_F(RecoveryTest, ATaskOfALostDeviceRunsAgainFromWhatHomeHolds) {
  Datum& a = datum();
  issued({{&a, Access::update}});
  end_copies(in);
  PlannedTask& planned = taken();
  lose(0, &planned);
  EXPECT_TRUE(recovery_.is_result_lost(planned));
  EXPECT_FALSE(a.poisoned) << "who writes it runs again";
  EXPECT_TRUE(recovery_.run_again(planned));
  EXPECT_EQ(planned.device, 1);
  EXPECT_EQ(planned.state(), TaskState::issued);
  EXPECT_EQ(state_.devices[1].issued, 1);
  EXPECT_EQ(count("content lost"), 0u);
}

TEST_F(RecoveryTest, NotIfAnotherHasWrittenItsOperandSince) {
  Datum& a = datum();
  issued({{&a, Access::read}});
  end_copies(in);
  issued({{&a, Access::update}}, 1);
  PlannedTask& planned = taken();
  lose(0, &planned);
  EXPECT_FALSE(recovery_.run_again(planned)) << "it would begin with what that one has left";
}

TEST_F(RecoveryTest, NotIfNothingHoldsWhatItBeganWith) {
  Datum& a = datum();
  issued({{&a, Access::update}});
  end_copies(in);
  end_kernel();
  issued({{&a, Access::update}});  // home is older
  PlannedTask& planned = taken();
  lose(0, &planned);
  EXPECT_FALSE(recovery_.run_again(planned));
}

TEST_F(RecoveryTest, ContentOfALostDeviceThatNobodyWritesIsLost) {
  Datum &a = datum(), &b = datum();
  issued({{&a, Access::update}, {&b, Access::read}});
  end_copies(in);
  end_kernel();
  lose(0);
  EXPECT_TRUE(a.poisoned);
  EXPECT_FALSE(b.poisoned) << "home has it";
  EXPECT_EQ(count("content lost"), 1u);
}

TEST_F(RecoveryTest, NothingElseBeginsUntilTheLastOfALostDeviceCameBack) {
  issued({{&datum(), Access::read}});
  EXPECT_FALSE(recovery_.under_way());
  lose(0);
  EXPECT_TRUE(recovery_.under_way());
  taken();
  EXPECT_FALSE(recovery_.under_way());
}

}  // namespace
}  // namespace quadriga
