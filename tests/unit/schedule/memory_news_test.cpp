// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/memory_news_test.cpp: what follows from what the memory tells.
#include "scheduler_parts.h"

namespace quadriga {
namespace {

using MemoryNewsTest = SchedulerPartsTest;

TEST_F(MemoryNewsTest, BothEndsOfACopyMayDoMore) {
  issued({{&datum(), Access::read}});
  end_copies(in);
  EXPECT_TRUE(state_.devices[0].touched);
  EXPECT_FALSE(state_.devices[1].touched) << "it has nothing to do with it";
  EXPECT_EQ(count("copied"), 1u);
}

TEST_F(MemoryNewsTest, WhoUsesContentSoonThatCameHomeMayDoMore) {
  Datum& a = datum();
  issued({{&a, Access::update}});
  end_copies(in);
  end_kernel();
  ASSERT_TRUE(memory_.evictor().send_home(a.tile, Reason::write_back));
  end_copies(out);
  EXPECT_FALSE(state_.devices[1].touched) << "it doesn't use it";
  Datum& b = datum();
  issued({{&b, Access::update}});
  end_copies(in);
  end_kernel();
  ready({{&b, Access::read}}, 1);
  ASSERT_TRUE(memory_.evictor().send_home(b.tile, Reason::write_back));
  end_copies(out);
  EXPECT_TRUE(state_.devices[1].touched);
}

TEST_F(MemoryNewsTest, AFailedCopyFromTheHostTellsWhichDeviceIsGone) {
  issued({{&datum(), Access::read}}, 1);
  end_copies(5 + in, error(Errc::device_lost));
  ASSERT_EQ(losses_.size(), 1u);
  EXPECT_EQ(losses_[0].device, 1);
  EXPECT_EQ(losses_[0].told.back(), "copied") << "the listener heard of the copy before";
}

TEST_F(MemoryNewsTest, OfACopyBetweenDevicesProbesTell) {
  Datum& a = datum();
  issued({{&a, Access::update}});
  end_copies(in);
  end_kernel();
  issued({{&a, Access::read}}, 1);
  end_copies(5 + peer, error(Errc::device_lost));
  EXPECT_TRUE(losses_.empty()) << "either may be gone";
  EXPECT_TRUE(memory_.transfers().probing(1));
  EXPECT_TRUE(memory_.transfers().probing(2));
  state_.devices[0].touched = state_.devices[1].touched = false;
  end_copies(out);  // the probe of the first
  EXPECT_TRUE(losses_.empty()) << "it is there";
  EXPECT_TRUE(state_.devices[0].touched && state_.devices[1].touched)
      << "what was put off may go on";
  end_copies(5 + out, error(Errc::device_lost));
  ASSERT_EQ(losses_.size(), 1u);
  EXPECT_EQ(losses_[0].device, 1);
}

TEST_F(MemoryNewsTest, AFailedCopyFailsWhoWaitedForIt) {
  const PlannedTask& reader = issued({{&datum(), Access::read}});
  end_copies(in, error(Errc::io));
  EXPECT_TRUE(losses_.empty());
  EXPECT_TRUE(reader.source_error);
  EXPECT_EQ(count("content lost"), 0u) << "home still has it";
}

TEST_F(MemoryNewsTest, OnlyDevicesEvict) {
  news_.evicted(datum().tile, host_space);
  EXPECT_EQ(count("evicted"), 0u);
  news_.evicted(datum().tile, 1);
  EXPECT_EQ(count("evicted"), 1u);
}

}  // namespace
}  // namespace quadriga
