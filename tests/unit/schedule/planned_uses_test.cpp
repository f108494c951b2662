// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/planned_uses_test.cpp: what a plan of a few tasks foretells of tiles.
#include "schedule/planned_uses.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>

#include "graph/graph.h"
#include "memory/eviction.h"
#include "schedule/schedule_listener.h"

namespace quadriga {
namespace {

struct NoListener final : ScheduleListener {
  void issued(PlannedTask&) override {}
  void ended(const EndedTask&) override {}
  void failed(Task&, std::exception_ptr, DeviceId) override {}
  void content_lost(Datum&, std::exception_ptr) override {}
  void device_lost(DeviceId) override {}
  void noticed(std::string) override {}
  void marked(DeviceId, Mark, TileId, std::uint64_t) override {}
  void copied(const EndedCopy&, const Completion&) override {}
  void ran(const PlannedTask&, const Completion&) override {}
  void freed(SpaceId, std::byte*, std::size_t) override {}
};

/// Two devices and three tiles.
class PlannedUsesTest : public ::testing::Test {
 protected:
  PlannedUsesTest() {
    state_.devices.resize(2);
    for (DeviceId id = 0; id < 2; ++id) {
      state_.devices[id].id = id;
      state_.devices[id].space = static_cast<SpaceId>(id + 1);
      state_.devices[id].streams.resize(1);
    }
    for (TileId tile = 0; tile < data_.size(); ++tile) {
      data_[tile].tile = tile;
      state_.plan.uses().at(tile).datum = &data_[tile];
    }
  }
  PlannedTask& place(TileId tile, Access access, DeviceId device) {
    Task& task = tasks_.emplace_back();
    task.id = tasks_.size();
    task.operands = task.inline_slots;
    task.operand_count = 1;
    OperandSlot& slot = task.slots()[0];
    slot.datum = &data_[tile];
    slot.access = access;
    slot.version = slot.datum->versions;
    if (writes(access)) ++slot.datum->versions;
    PlannedTask& planned = state_.plan.add(task);
    state_.plan.place(planned, device);
    return planned;
  }

  std::array<Datum, 3> data_;
  std::deque<Task> tasks_;
  Machine machine_ = Machine::parse("emulated:2");
  Instructions instructions_;
  NoListener listener_;
  ScheduleState state_{machine_, instructions_, listener_};
  PlannedUses uses_{state_};
};

TEST_F(PlannedUsesTest, TheNextUseIsOfTheSpacesDevice) {
  place(0, Access::read, 0);
  place(1, Access::read, 1);
  place(2, Access::read, 0);
  EXPECT_LT(uses_.next_use(0, 1), uses_.next_use(2, 1));
  EXPECT_EQ(uses_.next_use(1, 1), no_next_use);
  EXPECT_NE(uses_.next_use(1, 2), no_next_use);
  EXPECT_EQ(uses_.next_use(0, 3), no_next_use) << "a space without a device";
}

TEST_F(PlannedUsesTest, PositionsPassAsFastAsItsTasksLast) {
  EXPECT_EQ(uses_.positions_per_second(1), 0) << "nothing is planned";
  place(0, Access::read, 0);
  place(1, Access::read, 1);
  state_.plan.load(0).queued_seconds = 0.5;
  EXPECT_DOUBLE_EQ(uses_.positions_per_second(1), 4) << "two positions, its own in half a second";
  EXPECT_EQ(uses_.positions_per_second(2), 0) << "no time is known";
  state_.devices[0].streams[0].issued_seconds = 0.5;
  EXPECT_EQ(uses_.positions_per_second(1), 0) << "all of that was issued";
}

TEST_F(PlannedUsesTest, FinalIsWhatNoTaskWritesAnyMore) {
  EXPECT_FALSE(uses_.is_final(0)) << "more tasks may come";
  data_[0].final = true;
  EXPECT_TRUE(uses_.is_final(0));
  PlannedTask& writer = place(0, Access::update, 0);
  EXPECT_FALSE(uses_.is_final(0));
  state_.plan.make_ready(writer);
  state_.plan.issue(writer);
  state_.plan.end(writer);
  EXPECT_TRUE(uses_.is_final(0));
  EXPECT_FALSE(uses_.is_final(77)) << "no such tile";
}

TEST_F(PlannedUsesTest, WhatIsReadSoonIsWanted) {
  place(0, Access::read, 0);
  place(1, Access::read, 0);
  state_.plan.load(0).queued_seconds = 1;
  EXPECT_TRUE(uses_.is_wanted_within(10, 0, 1));
  EXPECT_FALSE(uses_.is_wanted_within(10, 0, 2)) << "it is used elsewhere";
  EXPECT_FALSE(uses_.is_wanted_within(10, 2, 1)) << "nobody uses it";
}

TEST_F(PlannedUsesTest, ReadersAreThoseWhoseFirstTaskReadsWhatIsThere) {
  EXPECT_EQ(uses_.readers(0), 0u);
  EXPECT_EQ(uses_.readers(77), 0u) << "no such tile";
  place(0, Access::read, 0);
  place(0, Access::read, 1);
  place(1, Access::write, 0);
  place(1, Access::read, 1);
  EXPECT_EQ(uses_.readers(0), 0b110u);
  EXPECT_EQ(uses_.readers(1), 0u) << "it is written before it is read";
}

}  // namespace
}  // namespace quadriga
