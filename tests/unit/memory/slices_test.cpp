// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/slices_test.cpp: tiles that come in slices, and are forwarded slice by slice.
// No backend: the test carries out the copies, and they end when it says so.
#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "base/random.h"
#include "memory/memory.h"

namespace quadriga {
namespace {

constexpr std::size_t width = 40, columns = 21, pitch = 64;
constexpr StreamId into_first = 0, to_second = 5;

TEST(Slices, CoverAllColumnsOnce) {
  for (std::size_t many = 1; many < 40; ++many)
    for (std::size_t slices = 1; slices <= many; ++slices) {
      std::size_t next = 0;
      for (std::size_t i = 0; i < slices; ++i) {
        const Slice slice = slice_of(width, many, slices, i);
        EXPECT_EQ(slice.first_column, next);
        EXPECT_GE(slice.columns, many / slices);
        EXPECT_LE(slice.columns, many / slices + 1);
        EXPECT_EQ(slice.first_byte, 0u);
        EXPECT_EQ(slice.bytes, width);
        next += slice.columns;
      }
      EXPECT_EQ(next, many);
    }
}

TEST(Slices, OfOneColumnCoverItsBytesOnce) {
  for (const std::size_t bytes : {1u, 255u, 256u, 700u, 5000u, 4096u})
    for (std::size_t slices = 1; slices <= most_slices(bytes, 1); ++slices) {
      std::size_t next = 0;
      for (std::size_t i = 0; i < slices; ++i) {
        const Slice slice = slice_of(bytes, 1, slices, i);
        EXPECT_EQ(slice.first_byte, next);
        EXPECT_EQ(slice.first_byte % slice_alignment, 0u);
        EXPECT_EQ(slice.columns, 1u);
        EXPECT_GT(slice.bytes, 0u);
        next += slice.bytes;
      }
      EXPECT_EQ(next, bytes);
    }
}

TEST(Slices, AreAsManyAsGain) {
  EXPECT_EQ(slices_for(1e-6, 10e-6, 100), 1u) << "a latency costs more than half of the copy";
  EXPECT_EQ(slices_for(90e-6, 10e-6, 100), 3u);
  EXPECT_EQ(slices_for(1, 10e-6, 100), 16u);
  EXPECT_EQ(slices_for(1, 0, 100), 16u);
  EXPECT_EQ(slices_for(1, 10e-6, 5), 5u) << "no more than columns";
  EXPECT_EQ(slices_for(1, 10e-6, 0), 1u);
}

/// A tile at home on the host, and two devices.
class SlicesTest : public ::testing::Test, public TileForecast, public MemoryListener {
 protected:
  std::uint64_t next_use(TileId, SpaceId) const override { return no_next_use; }
  double positions_per_second(SpaceId) const override { return 0; }
  bool is_final(TileId) const override { return false; }
  std::uint64_t readers(TileId) const override { return readers_; }
  void copy_ended(StreamId, Reason, TileId, SpaceId, SpaceId to, std::size_t bytes,
                  const Completion& completion) override {
    EXPECT_EQ(bytes, width * columns);
    arrived_.push_back(to);
    failures_ += completion.error ? 1 : 0;
    begin_ = completion.begin;
  }
  void evicted(TileId, SpaceId) override {}
  void probed(SpaceId, const Completion&) override {}

  void SetUp() override {
    Random random(3);
    for (std::byte& each : home_) each = static_cast<std::byte>(random());
    tile_ = memory_.replicas().add(
        {.home = home_.data(), .width_bytes = width, .columns = columns, .pitch = pitch});
    ASSERT_TRUE(memory_.residency().allocate(tile_, 1));
    ASSERT_TRUE(memory_.residency().allocate(tile_, 2));
  }
  std::vector<SpaceResources> resources() {
    const std::size_t bytes = block_[0].size();
    return {{},
            {.device = 0,
             .base = block_[0].data(),
             .bytes = bytes,
             .in = 0,
             .out = 1,
             .peers = {0, 0, 2}},
            {.device = 1,
             .base = block_[1].data(),
             .bytes = bytes,
             .in = 3,
             .out = 4,
             .peers = {0, 5, 0}}};
  }
  void queue(SpaceId from, SpaceId to, std::size_t slices = 1) {
    memory_.transfers().queue(tile_, from, to, Reason::stage, slices);
    take_instructions();
  }
  /// A task reads the tile in a space.
  void stage(SpaceId space) {
    const Need need{tile_, Access::read};
    ASSERT_TRUE(is_done(memory_.staging().stage({&need, 1}, space)));
    take_instructions();
  }
  void take_instructions() {
    for (const Instruction& each : instructions_.pending()) queued_[each.stream].push_back(each);
    instructions_.clear();
  }
  /// Whether the next operation of a stream waits for nothing more.
  bool can_run(StreamId stream) {
    std::deque<Instruction>& queue = queued_[stream];
    while (!queue.empty()) {
      const Event* const event = std::get_if<Event>(&queue.front().operation);
      if (!event) return true;
      if (ended_[event->stream] < event->ticket) return false;
      queue.pop_front();
    }
    return false;
  }
  /// Carries out the next operation of a stream.
  void run(StreamId stream, std::exception_ptr error = nullptr) {
    ASSERT_TRUE(can_run(stream));
    const Copy copy = std::get<Copy>(queued_[stream].front().operation);
    queued_[stream].pop_front();
    for (std::size_t i = 0; i < copy.height && !error; ++i)
      std::memcpy(copy.target + i * copy.target_pitch, copy.source + i * copy.source_pitch,
                  copy.width_bytes);
    const Event event{stream, ++ended_[stream]};
    const Nanoseconds begin = 100 * static_cast<Nanoseconds>(event.ticket);
    memory_.completed({.event = event, .begin = begin, .end = begin + 50, .error = error});
  }
  bool holds_home(SpaceId space) const {
    const Replicas& replicas = memory_.replicas();
    for (std::size_t i = 0; i < columns; ++i)
      if (std::memcmp(replicas.address(tile_, space) + i * replicas.pitch(tile_, space),
                      home_.data() + i * pitch, width) != 0)
        return false;
    return true;
  }

  std::vector<std::byte> home_ = std::vector<std::byte>(pitch * columns);
  std::array<std::array<std::byte, 4096>, 2> block_{};
  std::uint64_t readers_ = 0;
  std::vector<SpaceId> arrived_;
  int failures_ = 0;
  Nanoseconds begin_ = -1;
  std::map<StreamId, std::deque<Instruction>> queued_;
  std::map<StreamId, std::uint64_t> ended_;
  TileId tile_ = no_tile;
  Machine machine_ = Machine::parse("emulated:2,memory=1MiB,h2d=1MB/s,d2h=1MB/s,peer=4MB/s");
  Instructions instructions_;
  Memory memory_{instructions_, machine_, resources(), *this, *this, {}};
};

TEST_F(SlicesTest, TheTileIsThereWithTheLast) {
  queue(0, 1, 4);
  EXPECT_EQ(memory_.transfers().slices(tile_, 1).size(), 4u);
  EXPECT_EQ(memory_.transfers().slices(tile_, 1).back(), memory_.transfers().ready(tile_, 1));
  for (int slice = 0; slice < 4; ++slice) {
    EXPECT_TRUE(arrived_.empty());
    EXPECT_FALSE(memory_.directory().arrived(tile_, 1));
    run(into_first);
  }
  EXPECT_EQ(arrived_, std::vector<SpaceId>{1});
  EXPECT_EQ(begin_, 100) << "of the first slice";
  EXPECT_TRUE(memory_.transfers().slices(tile_, 1).empty());
  EXPECT_EQ(memory_.transfers().in_flight(), 0u);
  EXPECT_TRUE(holds_home(1));
  memory_.validate();
}

TEST_F(SlicesTest, ASliceIsForwardedOnceItHasArrived) {
  queue(0, 1, 4);
  queue(1, 2);
  for (int slice = 0; slice < 4; ++slice) {
    EXPECT_FALSE(can_run(to_second)) << "slice " << slice << " isn't there";
    run(into_first);
    EXPECT_TRUE(can_run(to_second)) << "slice " << slice << " is";
    run(to_second);
  }
  EXPECT_EQ(arrived_, (std::vector<SpaceId>{1, 2}));
  EXPECT_TRUE(holds_home(2));
  memory_.validate();
}

TEST_F(SlicesTest, WhoForwardsWhatIsThereDoesSoAtOnce) {
  queue(0, 1, 4);
  for (int slice = 0; slice < 4; ++slice) run(into_first);
  queue(1, 2);
  run(to_second);
  EXPECT_EQ(arrived_, (std::vector<SpaceId>{1, 2}));
  EXPECT_TRUE(holds_home(2));
}

TEST_F(SlicesTest, OneThatFailsFailsTheTileAndWhatWasForwarded) {
  queue(0, 1, 3);
  queue(1, 2);
  run(into_first);
  run(into_first, std::make_exception_ptr(Error(Errc::io, "lost")));
  run(into_first);
  EXPECT_EQ(failures_, 1);
  for (int slice = 0; slice < 3; ++slice) run(to_second);
  EXPECT_EQ(failures_, 2);
  EXPECT_FALSE(memory_.directory().valid(tile_, 1));
  EXPECT_FALSE(memory_.directory().valid(tile_, 2));
  EXPECT_TRUE(memory_.directory().written(tile_)) << "home has it";
  memory_.validate();
}

TEST_F(SlicesTest, WhatTwoDevicesReadLeavesTheHostOnceAndIsPassedOn) {
  readers_ = 0b110;
  stage(1);
  const std::size_t slices = memory_.transfers().slices(tile_, 1).size();
  EXPECT_EQ(slices, 8u) << "210 us from device to device, and 2.7 us for each slice";
  stage(2);
  EXPECT_EQ(memory_.transfers().slices(tile_, 2).size(), slices);
  for (std::size_t slice = 0; slice < slices; ++slice) {
    EXPECT_FALSE(can_run(to_second));
    run(into_first);
    run(to_second);
  }
  EXPECT_TRUE(holds_home(2));
}

TEST_F(SlicesTest, WhatOneDeviceReadsComesAsAWhole) {
  readers_ = 0b010;
  stage(1);
  EXPECT_TRUE(memory_.transfers().slices(tile_, 1).empty());
  run(into_first);
  readers_ = 0b110;
  stage(2);
  EXPECT_TRUE(memory_.transfers().slices(tile_, 2).empty()) << "the other one has it already";
}

TEST_F(SlicesTest, WhatAKernelWritesIsNotInSlices) {
  queue(0, 1, 4);
  memory_.used(tile_, 1, Access::update, {6, 1});
  EXPECT_TRUE(memory_.transfers().slices(tile_, 1).empty());
}

}  // namespace
}  // namespace quadriga
