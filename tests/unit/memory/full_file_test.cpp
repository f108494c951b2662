// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/full_file_test.cpp: the host's buffers are evicted to a file, until that has no
// room or its disk is full. No backend: copies end when the test says so.
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/spill_file.h>

#include <array>
#include <exception>
#include <string>
#include <vector>

#include "memory/memory.h"

namespace quadriga {
namespace {

constexpr std::size_t tile_bytes = 4096;
constexpr SpaceId file_space = 2;

class FullFileTest : public ::testing::Test, public TileForecast, public MemoryListener {
 protected:
  /// A device that nobody uses, a file of three tiles, and two buffers of the host.
  FullFileTest()
      : machine_(with_spill(Machine::parse("emulated:1,memory=1MiB"), "file", false)),
        memory_(instructions_, machine_, resources(), *this, *this,
                {.spill_bytes = 2 * tile_bytes}) {}

  std::uint64_t next_use(TileId, SpaceId) const override { return no_next_use; }
  void copy_ended(StreamId, Reason, TileId, SpaceId, SpaceId, std::size_t,
                  const Completion&) override {}
  void evicted(TileId, SpaceId) override {}
  void probed(SpaceId, const Completion&) override {}

  static std::vector<SpaceResources> resources() {
    static std::array<std::byte, tile_bytes> device;
    static std::array<std::byte, 3 * tile_bytes> file;
    std::vector<SpaceResources> all(1);
    all.push_back({.device = 0,
                   .base = device.data(),
                   .bytes = device.size(),
                   .in = 0,
                   .out = 1,
                   .peers = {0, 0, 0}});
    all.push_back({.device = 1,
                   .base = file.data(),
                   .bytes = file.size(),
                   .in = 2,
                   .out = 3,
                   .peers = {0, 0, 0},
                   .is_file = true});
    return all;
  }
  /// Written on the host, without a home.
  TileId written() {
    const TileId tile = memory_.replicas().add({.width_bytes = tile_bytes, .columns = 1});
    const Need need{tile, Access::write};
    EXPECT_TRUE(is_done(memory_.staging().stage({&need, 1}, host_space)));
    memory_.used(tile, host_space, Access::write, {20, ++kernels_});
    memory_.transfers().confirm(tile);
    memory_.residency().unpin(tile, host_space);
    return tile;
  }
  /// Returns how many there were.
  std::size_t end_copies(const std::exception_ptr& error = nullptr) {
    std::vector<Event> events;
    for (const Instruction& each : instructions_.pending())
      if (each.ticket > 0) events.push_back({each.stream, each.ticket});
    instructions_.clear();
    for (const Event event : events) memory_.completed({.event = event, .error = error});
    return events.size();
  }
  std::size_t file_bytes() const { return memory_.pool(file_space).capacity(); }

  Machine machine_;
  Instructions instructions_;
  Memory memory_;
  std::uint64_t kernels_ = 0;
};

TEST_F(FullFileTest, ABufferThatIsNeededLeavesForTheFile) {
  const TileId first = written(), second = written();
  EXPECT_EQ(memory_.evictor().make_room(tile_bytes, host_space), Awaits::room);
  EXPECT_EQ(end_copies(), 1U);
  EXPECT_EQ(memory_.evictor().make_room(tile_bytes, host_space), Awaits::nothing);
  const Directory& directory = memory_.directory();
  EXPECT_NE(directory.valid(first, host_space), directory.valid(second, host_space));
  EXPECT_NE(directory.valid(first, file_space), directory.valid(second, file_space));
  memory_.validate();
}

TEST_F(FullFileTest, WhatADiskRefusedStaysAndNobodyTriesAgain) {
  const TileId first = written(), second = written();
  EXPECT_EQ(memory_.evictor().make_room(tile_bytes, host_space), Awaits::room);
  const Error full(Errc::io, "the file can't grow");
  EXPECT_EQ(end_copies(std::make_exception_ptr(full)), 1U);
  EXPECT_EQ(file_bytes(), 0U);
  for (const TileId tile : {first, second}) {
    EXPECT_TRUE(memory_.directory().dirty(tile, host_space));
    EXPECT_FALSE(memory_.directory().valid(tile, file_space));
  }
  EXPECT_EQ(memory_.evictor().make_room(tile_bytes, host_space), Awaits::buffer);
  EXPECT_EQ(end_copies(), 0U) << "it would be refused again";
  EXPECT_NE(memory_.residency().refusal().find("the file can't grow"), std::string::npos);
  memory_.validate();
}

TEST_F(FullFileTest, WhatLiesInTheFileStaysThereWhenTheDiskIsFull) {
  const TileId first = written();
  EXPECT_EQ(memory_.evictor().make_room(2 * tile_bytes, host_space), Awaits::room);
  EXPECT_EQ(end_copies(), 1U);
  EXPECT_EQ(memory_.evictor().make_room(2 * tile_bytes, host_space), Awaits::nothing);
  ASSERT_TRUE(memory_.directory().dirty(first, file_space));
  const TileId second = written();
  EXPECT_EQ(memory_.evictor().make_room(2 * tile_bytes, host_space), Awaits::room);
  EXPECT_EQ(end_copies(std::make_exception_ptr(Error(Errc::io, "full"))), 1U);
  EXPECT_EQ(file_bytes(), tile_bytes);
  EXPECT_TRUE(memory_.directory().dirty(first, file_space));
  EXPECT_TRUE(memory_.directory().dirty(second, host_space));
  // It comes back, and its place is the other's.
  const Need need{first, Access::read};
  EXPECT_TRUE(is_done(memory_.staging().stage({&need, 1}, host_space)));
  EXPECT_EQ(end_copies(), 1U);
  EXPECT_TRUE(memory_.directory().arrived(first, host_space));
  memory_.validate();
}

TEST_F(FullFileTest, AFileThatRefusesWhereNothingCanBeCutOffIsNotAskedForEver) {
  const TileId first = written();
  written();
  EXPECT_EQ(memory_.evictor().make_room(2 * tile_bytes, host_space), Awaits::room);
  EXPECT_EQ(end_copies(), 2U);
  EXPECT_EQ(memory_.evictor().make_room(2 * tile_bytes, host_space), Awaits::nothing);
  // The first leaves a place below the other's, and needs one again.
  const Need need{first, Access::update};
  ASSERT_TRUE(is_done(memory_.staging().stage({&need, 1}, host_space)));
  EXPECT_EQ(end_copies(), 1U);
  memory_.used(first, host_space, Access::update, {20, ++kernels_});
  memory_.transfers().confirm(first);
  memory_.residency().unpin(first, host_space);
  const auto broken = std::make_exception_ptr(Error(Errc::io, "the disk is broken"));
  const auto is_refused = [&] {
    return memory_.evictor().make_room(2 * tile_bytes, host_space) == Awaits::room &&
           end_copies(broken) == 1;
  };
  int refusals = 0;
  while (refusals < 1000 && is_refused()) ++refusals;
  EXPECT_GT(refusals, 1);
  EXPECT_LT(refusals, 1000);
  EXPECT_TRUE(memory_.directory().dirty(first, host_space));
  EXPECT_NE(memory_.residency().refusal().find("the disk is broken"), std::string::npos);
  memory_.validate();
}

}  // namespace
}  // namespace quadriga
