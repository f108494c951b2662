// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/hand_over_test.cpp: which tiles leave the host's full buffers, how many, and
// where they go. No backend: copies end when the test says so.
#include "memory/hand_over.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <array>
#include <string>
#include <vector>

#include "memory/memory.h"

namespace quadriga {
namespace {

constexpr std::size_t tile_bytes = 4096;
constexpr std::size_t room = 4;  // Tiles of a device, and buffers of the host.

class HandOverTest : public ::testing::Test, public TileForecast, public MemoryListener {
 protected:
  /// Three devices; `links`: between them.
  explicit HandOverTest(const std::string& links = "peer=off")
      : machine_(Machine::parse("emulated:3,memory=1MiB," + links)),
        memory_(instructions_, machine_, resources(), *this, *this,
                {.spill_bytes = room * tile_bytes}) {}

  std::uint64_t next_use(TileId, SpaceId) const override { return no_next_use; }
  void copy_ended(StreamId, Reason, TileId, SpaceId, SpaceId, std::size_t,
                  const Completion&) override {}
  void evicted(TileId, SpaceId) override {}
  void probed(SpaceId, const Completion&) override {}

  static std::vector<SpaceResources> resources() {
    static std::array<std::array<std::byte, room * tile_bytes>, 3> memory;
    std::vector<SpaceResources> all(1);
    for (StreamId device = 0; device < 3; ++device)
      all.push_back({.device = static_cast<DeviceId>(device),
                     .base = memory[device].data(),
                     .bytes = room * tile_bytes,
                     .in = 5 * device,
                     .out = 5 * device + 1,
                     .peers = {0, 5 * device + 2, 5 * device + 3, 5 * device + 4}});
    return all;
  }
  /// Written in this space, without a home.
  TileId written(SpaceId space) {
    const TileId tile = memory_.replicas().add({.width_bytes = tile_bytes, .columns = 1});
    use(tile, space, Access::write);
    return tile;
  }
  /// At home on a device, and current there.
  TileId at_home(SpaceId space) {
    return memory_.replicas().add({.home = homes_.emplace_back(tile_bytes).data(),
                                   .width_bytes = tile_bytes,
                                   .columns = 1,
                                   .pitch = tile_bytes,
                                   .home_space = space});
  }
  void use(TileId tile, SpaceId space, Access access) {
    const Need need{tile, access};
    ASSERT_TRUE(is_done(memory_.staging().stage({&need, 1}, space)));
    end_copies();
    memory_.used(tile, space, access, {20, ++kernels_});
    if (writes(access)) memory_.transfers().confirm(tile);
    memory_.residency().unpin(tile, space);
  }
  void end_copies(const std::exception_ptr& error = nullptr) {
    std::vector<Event> events;
    for (const Instruction& each : instructions_.pending())
      if (each.ticket > 0) events.push_back({each.stream, each.ticket});
    instructions_.clear();
    for (const Event event : events) memory_.completed({.event = event, .error = error});
  }
  std::vector<TileId> fill(SpaceId space, std::size_t count = room) {
    std::vector<TileId> tiles;
    for (std::size_t i = 0; i < count; ++i) tiles.push_back(written(space));
    return tiles;
  }
  bool make_room(std::vector<Need> needs, SpaceId space) {
    const bool any = memory_.hand_over().make_room(needs, space);
    copies_ = memory_.transfers().in_flight();
    end_copies();
    memory_.validate();
    return any;
  }
  std::size_t count(SpaceId space) const { return memory_.pool(space).residents().size(); }
  bool has(TileId tile, SpaceId space) const { return memory_.directory().valid(tile, space); }

  std::size_t copies_ = 0;  ///< That make_room() has begun.
  std::uint64_t kernels_ = 0;
  std::vector<std::vector<std::byte>> homes_;
  Machine machine_;
  Instructions instructions_;
  Memory memory_;
};

TEST_F(HandOverTest, ATaskOfTheHostGetsAllItsBuffers) {
  fill(host_space);
  fill(1, 3);
  const TileId a = written(1), b = written(2);
  fill(2, 2);
  EXPECT_TRUE(make_room({{a, Access::read}, {b, Access::read}, {a, Access::read}}, host_space));
  EXPECT_EQ(copies_, 2u);
  EXPECT_EQ(count(host_space), room - 2);
  EXPECT_EQ(count(3), 2u) << "to the device with the most room";
}

TEST_F(HandOverTest, WhatADeviceNeedsGoesThereItself) {
  const std::vector<TileId> on_host = fill(host_space);
  fill(1, 3);
  EXPECT_TRUE(make_room({{on_host[2], Access::update}}, 1));
  EXPECT_TRUE(has(on_host[2], 1));
  EXPECT_FALSE(has(on_host[2], host_space));
  EXPECT_EQ(copies_, 1u);
}

TEST_F(HandOverTest, AsMuchLeavesAsTheDevicesVictimsTake) {
  fill(host_space);
  fill(1, 3);
  const TileId a = written(2), b = written(2), c = written(2);
  EXPECT_TRUE(make_room({{a, Access::read}, {b, Access::read}, {c, Access::read}}, 1));
  EXPECT_EQ(copies_, 2u) << "of three missing operands one has room on the device";
}

/// Two devices that no link joins: each comes by a buffer that the next one uses again.
TEST_F(HandOverTest, OperandsThatPassTheHostDoSoOneByOne) {
  fill(host_space);
  const std::vector<Need> needs{
      {at_home(2), Access::read}, {at_home(2), Access::read}, {at_home(3), Access::read}};
  EXPECT_TRUE(make_room(needs, 1));
  EXPECT_EQ(copies_, 1u);
  ASSERT_FALSE(is_done(memory_.staging().stage(needs, 1))) << "the second waits for the buffer";
  for (int i = 0; i < 3; ++i) {
    end_copies();
    if (is_done(memory_.staging().stage(needs, 1))) break;
  }
  end_copies();
  for (const Need& need : needs) EXPECT_TRUE(has(need.tile, 1));
}

class JoinedTest : public HandOverTest {
 protected:
  JoinedTest() : HandOverTest("peer=10GB/s") {}
};

TEST_F(JoinedTest, OperandsThatALinkBringsTakeNoBuffer) {
  fill(host_space);
  fill(1, 3);
  const std::vector<Need> needs{{at_home(2), Access::read}, {written(3), Access::read}};
  EXPECT_TRUE(make_room(needs, 1));
  EXPECT_EQ(copies_, 1u) << "for the victim of the one that has no room yet";
}

TEST_F(HandOverTest, OperandsOfTheTaskStayOnItsDevice) {
  const std::vector<TileId> on_host = fill(host_space);
  use(on_host[0], 1, Access::read);  // clean there
  fill(1, 3);
  EXPECT_TRUE(make_room({{on_host[0], Access::read}, {on_host[1], Access::read}}, 1));
  EXPECT_TRUE(has(on_host[0], 1));
  EXPECT_FALSE(has(on_host[1], 1)) << "there is room only in the place of the other";
}

TEST_F(HandOverTest, CleanReplicasMakeRoomAndDirtyOnesStay) {
  const std::vector<TileId> on_host = fill(host_space);
  fill(1), fill(3);
  const std::vector<TileId> dirty = fill(2, 3);
  use(on_host[0], 2, Access::read);
  use(on_host[0], host_space, Access::update);  // the one on the device is old
  const TileId clean = on_host[1];
  use(clean, 2, Access::read);
  EXPECT_TRUE(make_room(
      {{memory_.replicas().add({.width_bytes = tile_bytes, .columns = 1}), Access::write}},
      host_space));
  EXPECT_FALSE(has(clean, host_space)) << "the device has it as well";
  for (const TileId tile : dirty) EXPECT_TRUE(has(tile, 2));
}

TEST_F(HandOverTest, NothingLeavesWhereNoDeviceHasRoom) {
  fill(host_space), fill(1), fill(2), fill(3);
  const TileId fresh = memory_.replicas().add({.width_bytes = tile_bytes, .columns = 1});
  EXPECT_FALSE(make_room({{fresh, Access::write}}, host_space));
  EXPECT_FALSE(make_room({{fresh, Access::write}}, 1));
  EXPECT_EQ(count(host_space), room);
}

TEST_F(HandOverTest, ALostDeviceTakesNothing) {
  fill(host_space), fill(1), fill(2);
  std::vector<TileId> lost;
  memory_.space_lost(3, lost);
  const TileId fresh = memory_.replicas().add({.width_bytes = tile_bytes, .columns = 1});
  EXPECT_FALSE(make_room({{fresh, Access::write}}, host_space));
}

/// Invariant 3.
TEST_F(HandOverTest, WhatDoesNotArriveStays) {
  const std::vector<TileId> on_host = fill(host_space);
  const TileId fresh = memory_.replicas().add({.width_bytes = tile_bytes, .columns = 1});
  const Need need{fresh, Access::write};
  ASSERT_TRUE(memory_.hand_over().make_room({&need, 1}, host_space));
  end_copies(std::make_exception_ptr(Error(Errc::io, "planted")));
  for (const TileId tile : on_host) EXPECT_TRUE(has(tile, host_space));
  for (SpaceId space = 1; space <= 3; ++space) EXPECT_EQ(count(space), 0u);
  memory_.validate();
}

}  // namespace
}  // namespace quadriga
