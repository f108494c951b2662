// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/column_test.cpp: which tiles of a column come with one copy, because a link is
// quick with long runs only. No backend: copies end when the test says so.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <vector>

#include "memory/memory.h"

namespace quadriga {
namespace {

constexpr std::size_t width = 64;
constexpr std::size_t columns = 4;
constexpr std::size_t rows_of_tiles = 6;
constexpr std::size_t pitch = width * rows_of_tiles;
constexpr StreamId in = 0, out = 1;

/// A device whose link reaches half of its rate by runs of a tile, and all of it by four times
/// that.
class ColumnTest : public ::testing::Test, public TileForecast, public MemoryListener {
 protected:
  std::uint64_t next_use(TileId, SpaceId) const override { return no_next_use; }
  bool is_wanted_within(double, TileId tile, SpaceId) const override {
    return wanted_.contains(tile);
  }
  void copy_ended(StreamId, Reason, TileId tile, SpaceId, SpaceId, std::size_t,
                  const Completion& completion) override {
    arrived_.push_back(tile);
    times_.emplace_back(completion.begin, completion.end);
    failures_ += completion.error ? 1 : 0;
  }
  void evicted(TileId, SpaceId) override {}
  void probed(SpaceId, const Completion&) override {}

  void SetUp() override { begin(16 * width * columns); }
  void begin(std::size_t memory, double share_of_short_runs = 0.5) {
    tiles_.clear();
    instructions_ = {};
    machine_ = Machine::parse("emulated:1,memory=1MiB,h2d=100MB/s,d2h=100MB/s");
    for (Link& link : machine_.links)
      link.runs = {{width, share_of_short_runs}, {4.0 * width, 1.0}};
    block_.resize(memory);
    memory_.emplace(instructions_, machine_,
                    std::vector<SpaceResources>{{},
                                                {.device = 0,
                                                 .base = block_.data(),
                                                 .bytes = memory,
                                                 .in = in,
                                                 .out = out,
                                                 .peers = {0, 0}}},
                    *this, *this, MemoryOptions{});
    for (std::size_t row = 0; row < rows_of_tiles; ++row)
      tiles_.push_back(memory_->replicas().add({.home = home_.data() + row * width,
                                                .width_bytes = width,
                                                .columns = columns,
                                                .pitch = pitch}));
  }
  void stage(TileId tile) {
    const Need need{tile, Access::read};
    ASSERT_TRUE(is_done(memory_->staging().stage({&need, 1}, 1)));
  }
  std::vector<Copy> copies() const {
    std::vector<Copy> found;
    for (const Instruction& each : instructions_.pending())
      if (const Copy* const copy = std::get_if<Copy>(&each.operation)) found.push_back(*copy);
    return found;
  }
  void end(std::exception_ptr error = nullptr) {
    memory_->completed({.event = {in, ++ended_}, .begin = 1000, .end = 5000, .error = error});
  }

  std::set<TileId> wanted_;
  std::vector<TileId> arrived_;
  std::vector<std::pair<Nanoseconds, Nanoseconds>> times_;
  int failures_ = 0;
  std::uint64_t ended_ = 0;
  std::vector<std::byte> home_ = std::vector<std::byte>(pitch * columns);
  std::vector<std::byte> block_;
  std::vector<TileId> tiles_;
  Machine machine_;
  Instructions instructions_;
  std::optional<Memory> memory_;
};

TEST_F(ColumnTest, TilesThatAreWantedComeUntilTheRunIsLong) {
  wanted_ = {tiles_.begin(), tiles_.end()};
  stage(tiles_[1]);
  ASSERT_EQ(copies().size(), 1u);
  const Copy copy = copies().front();
  EXPECT_EQ(copy.source, home_.data() + width);
  EXPECT_EQ(copy.width_bytes, 4 * width);
  EXPECT_EQ(copy.height, columns);
  ASSERT_EQ(copy.pieces->size(), 4u);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(copy.pieces->at(i).memory, memory_->replicas().address(tiles_[1 + i], 1));
  EXPECT_FALSE(memory_->directory().arrived(tiles_[2], 1));
  end();
  EXPECT_EQ(arrived_, std::vector(tiles_.begin() + 1, tiles_.begin() + 5));
  EXPECT_TRUE(memory_->directory().arrived(tiles_[4], 1));
  EXPECT_EQ(memory_->transfers().in_flight(), 0u);
  memory_->validate();
}

TEST_F(ColumnTest, TheirTimesFollowOneAnother) {
  wanted_ = {tiles_[1]};
  stage(tiles_[0]);
  end();
  ASSERT_EQ(times_.size(), 2u);
  EXPECT_EQ(times_[0], std::pair(Nanoseconds{1000}, Nanoseconds{3000}));
  EXPECT_EQ(times_[1], std::pair(Nanoseconds{3000}, Nanoseconds{5000}));
}

TEST_F(ColumnTest, WhatNobodyWantsNowStaysAtHome) {
  wanted_ = {tiles_[2]};
  stage(tiles_[0]);
  EXPECT_FALSE(copies().front().pieces);
  EXPECT_FALSE(memory_->replicas().has_memory(tiles_[1], 1));
}

TEST_F(ColumnTest, WhatIsThereOrOnItsWayDoesntComeAgain) {
  stage(tiles_[1]);
  wanted_ = {tiles_.begin(), tiles_.end()};
  stage(tiles_[0]);
  ASSERT_EQ(copies().size(), 2u);
  EXPECT_FALSE(copies().back().pieces);
}

TEST_F(ColumnTest, NothingLeavesForThem) {
  begin(4 * width * columns);
  wanted_ = {tiles_.begin(), tiles_.end()};
  stage(tiles_[0]);
  EXPECT_LE(copies().front().pieces->size(), 3u) << "half of the memory stays free";
}

TEST_F(ColumnTest, AFailureIsThatOfEachTile) {
  wanted_ = {tiles_[1]};
  stage(tiles_[0]);
  end(std::make_exception_ptr(std::runtime_error("no")));
  EXPECT_EQ(failures_, 2);
  EXPECT_FALSE(memory_->directory().valid(tiles_[1], 1));
}

TEST_F(ColumnTest, WhatGainsLittleComesAlone) {
  constexpr double little = 0.8;
  begin(16 * width * columns, little);
  wanted_ = {tiles_.begin(), tiles_.end()};
  stage(tiles_[0]);
  EXPECT_FALSE(copies().front().pieces);
}

TEST_F(ColumnTest, LinksThatLoseNothingGetSingleTiles) {
  begin(16 * width * columns, 1);
  wanted_ = {tiles_.begin(), tiles_.end()};
  stage(tiles_[0]);
  EXPECT_FALSE(copies().front().pieces);
}

}  // namespace
}  // namespace quadriga
