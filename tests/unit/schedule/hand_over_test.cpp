// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/hand_over_test.cpp: tiles that leave the host's full buffers for a task, and
// for how long other devices give way. Copies and kernels end when the test says so.
#include "scheduler_parts.h"

namespace quadriga {
namespace {

class HandOverTurnsTest : public SchedulerPartsTest {
 protected:
  static constexpr std::size_t buffers = 4;  ///< Tiles that the host's memory holds.

  HandOverTurnsTest() : SchedulerPartsTest(buffers * tile_bytes) {}

  /// Tiles in one, without a home.
  Datum& temporary(std::int64_t tiles = 1) {
    Datum& made = data_.emplace_back();
    made.rows = tile_bytes;
    made.ld = tile_bytes;
    made.cols = tiles;
    made.tile = memory_.replicas().add(
        {.width_bytes = tile_bytes, .columns = static_cast<std::size_t>(tiles)});
    state_.plan.uses().at(made.tile) = {};
    state_.plan.uses().at(made.tile).datum = &made;
    return made;
  }
  /// One that a task on a device has written.
  Datum& on_device(DeviceId device, std::int64_t tiles = 1) {
    Datum& made = temporary(tiles);
    issued({{&made, Access::write}}, device);
    end_kernel(device);
    return made;
  }
  /// One that lies in the host's buffers.
  Datum& on_host() {
    Datum& made = temporary();
    const Need need{made.tile, Access::write};
    EXPECT_TRUE(is_done(memory_.staging().stage({&need, 1}, host_space)));
    memory_.used(made.tile, host_space, Access::write, {});
    memory_.transfers().confirm(made.tile);
    memory_.residency().unpin(made.tile, host_space);
    return made;
  }
  bool is_on_host(const Datum& datum) const {
    return memory_.directory().valid(datum.tile, host_space);
  }
  /// Decides until nothing is left.
  void decide() {
    turns_.begin();
    while (turns_.step()) continue;
  }
  void end_all_copies() {
    for (const StreamId device : {0U, 5U})
      for (const StreamId stream : {in, out, peer}) end_copies(device + stream);
  }
  std::size_t copying() const { return memory_.transfers().in_flight(); }
  /// What a driver does until nothing happens any more.
  void run() {
    while (true) {
      decide();
      if (copying() > 0)
        end_all_copies();
      else if (state_.any_issued() || !turns_.resolve_standstill())
        return;
    }
  }
};

TEST_F(HandOverTurnsTest, ATileThatHasRoomElsewhereLeavesForTheTask) {
  for (std::size_t i = 0; i < buffers; ++i) on_host();
  for (std::size_t i = 0; i < room; ++i) on_device(0);
  PlannedTask& stuck = ready({{&temporary(), Access::write}});
  run();
  EXPECT_TRUE(stuck.is_among(issued_states));
  EXPECT_EQ(memory_.pool(2).residents().size(), 1u);
  memory_.validate();
}

TEST_F(HandOverTurnsTest, WhatHasRoomNowhereIsRefused) {
  for (std::size_t i = 0; i < buffers; ++i) on_host();
  for (std::size_t i = 0; i < room; ++i) on_device(0), on_device(1);
  listener_.told.clear();
  ready({{&temporary(), Access::write}});
  run();
  EXPECT_EQ(listener_.told, (std::vector<std::string>{"failed", "ended"}));
}

TEST_F(HandOverTurnsTest, OthersGiveWayUntilTheTaskIsIssued) {
  for (std::size_t i = 0; i < buffers; ++i) on_host();
  for (std::size_t i = 0; i < room; ++i) on_device(0);
  PlannedTask& stuck = ready({{&temporary(), Access::write}});
  decide();
  ASSERT_TRUE(turns_.resolve_standstill());
  PlannedTask& other = ready({{&datum(), Access::read}}, 1);
  for (int i = 0; i < 3 && !stuck.is_among(issued_states); ++i) {
    decide();
    EXPECT_EQ(other.is_among(issued_states), stuck.is_among(issued_states));
    end_all_copies();
  }
  EXPECT_TRUE(other.is_among(issued_states));
}

/// The device is gone, and so are its copies: nothing ends that could tell.
TEST_F(HandOverTurnsTest, NobodyGivesWayToADeviceThatIsLost) {
  for (std::size_t i = 0; i < buffers; ++i) on_host();
  for (std::size_t i = 0; i < room; ++i) on_device(0);
  PlannedTask& stuck = ready({{&temporary(), Access::write}});
  decide();
  ASSERT_TRUE(turns_.resolve_standstill());
  PlannedTask& other = ready({{&datum(), Access::read}}, 1);
  ASSERT_EQ(state_.devices[0].head, &stuck);
  state_.devices[0].lost = true;
  state_.devices[0].drop_head();
  decide();
  EXPECT_TRUE(other.is_among(issued_states));
}

/// A promise is open, which the other device's task may lead to: no event tells before.
TEST_F(HandOverTurnsTest, NobodyGivesWayForWhatNothingInFlightCanEnd) {
  for (std::size_t i = 0; i < buffers; ++i) on_host();
  for (std::size_t i = 0; i < room; ++i) on_device(0);
  Datum& there = on_device(1);
  for (std::size_t i = 2; i < room; ++i) on_device(1);
  const PlannedTask& stuck = ready({{&temporary(), Access::write}});
  decide();
  ASSERT_TRUE(turns_.resolve_standstill());
  end_all_copies();
  on_host();  // somebody takes the room
  state_.detached = 1;
  const PlannedTask& other = ready({{&there, Access::read}}, 1);
  decide();
  EXPECT_FALSE(other.is_among(issued_states)) << "it may still be served";
  EXPECT_TRUE(turns_.resolve_standstill());
  decide();
  EXPECT_TRUE(other.is_among(issued_states));
  EXPECT_FALSE(stuck.is_among(issued_states));
}

/// What has room for a moment fetches its operands; others don't fail meanwhile.
TEST_F(HandOverTurnsTest, OthersLookAgainBeforeTheyAreRefused) {
  for (std::size_t i = 0; i < buffers; ++i) on_host();
  for (std::size_t i = 0; i < room; ++i) on_device(0);
  ready({{&temporary(), Access::write}});
  decide();
  ASSERT_TRUE(turns_.resolve_standstill());
  end_all_copies();
  listener_.told.clear();
  state_.devices[0].drop_head();  // it waits for something else
  EXPECT_TRUE(turns_.resolve_standstill());
  EXPECT_EQ(listener_.told, std::vector<std::string>());
}

TEST_F(HandOverTurnsTest, BesideAnOpenPromiseTilesLeaveAndNobodyIsRefused) {
  state_.detached = 1;
  for (std::size_t i = 0; i < buffers; ++i) on_host();
  for (std::size_t i = 0; i < room; ++i) on_device(0);
  for (std::size_t i = 1; i < room; ++i) on_device(1);
  const PlannedTask& stuck = ready({{&temporary(), Access::write}});
  run();
  EXPECT_TRUE(stuck.is_among(issued_states));
  end_kernel();
  listener_.told.clear();
  const PlannedTask& never = ready({{&temporary(), Access::write}});
  run();
  EXPECT_FALSE(never.is_among(issued_states));
  EXPECT_EQ(listener_.told, std::vector<std::string>()) << "what the promise ends may make room";
  state_.detached = 0;
  run();
  EXPECT_EQ(listener_.told, (std::vector<std::string>{"failed", "ended"}));
}

/// The room that a tile has left is the task's: nothing is cleaned into it.
TEST_F(HandOverTurnsTest, NothingIsCleanedIntoRoomThatIsClaimed) {
  for (std::size_t i = 0; i < buffers; ++i) on_host();
  const Datum& small = on_device(0);
  on_device(0, 3);  // leaves for the task, which takes three buffers
  for (std::size_t i = 1; i < room; ++i) on_device(1);
  ready({{&temporary(2), Access::write}});
  decide();
  ASSERT_TRUE(turns_.resolve_standstill());
  end_all_copies();
  decide();
  EXPECT_EQ(copying(), 0u);
  EXPECT_FALSE(is_on_host(small));
}

/// Each time one buffer is free, and it takes four.
TEST_F(HandOverTurnsTest, AllThatLieOnTheHostMayLeaveOneByOne) {
  for (std::size_t i = 0; i < buffers; ++i) on_host();
  on_device(0, room);
  const PlannedTask& stuck = ready({{&temporary(), Access::write}});
  run();
  EXPECT_TRUE(stuck.is_among(issued_states));
  EXPECT_EQ(memory_.pool(2).residents().size(), buffers);
}

}  // namespace
}  // namespace quadriga
