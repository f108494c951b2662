// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/relay_test.cpp: which copies from and to the host go by way of another device,
// whose link is quicker. No backend: copies end when the test says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <stdexcept>
#include <vector>

#include "memory/memory.h"

namespace quadriga {
namespace {

constexpr std::size_t tile_bytes = 4096;
constexpr std::size_t tiles = 16;
constexpr StreamId into_first = 0, out_of_first = 1, to_first = 2;
constexpr StreamId into_second = 3, out_of_second = 4, to_second = 5;

/// Two devices of sixteen tiles. Copies between the host and the second take ten times as long as
/// those of the first, which take 41 us.
class RelayTest : public ::testing::Test, public TileForecast, public MemoryListener {
 protected:
  std::uint64_t next_use(TileId, SpaceId) const override { return no_next_use; }
  double positions_per_second(SpaceId) const override { return 0; }
  bool is_final(TileId tile) const override { return finals_.contains(tile); }
  void copy_ended(StreamId, Reason, TileId, SpaceId, SpaceId, std::size_t,
                  const Completion&) override {}
  void evicted(TileId, SpaceId) override {}
  void probed(SpaceId, const Completion&) override {}

  static Machine machine(double second_rate) {
    Machine machine = Machine::parse("emulated:2,memory=1MiB,h2d=100MB/s,d2h=100MB/s,peer=1GB/s");
    for (Link& link : machine.links)
      if (link.name.starts_with("emulated1 ") && link.name.find("peer") == std::string::npos)
        link.bytes_per_second = second_rate;
    return machine;
  }
  static std::vector<SpaceResources> resources() {
    static std::array<std::array<std::byte, tiles * tile_bytes>, 2> memory;
    const std::size_t bytes = tiles * tile_bytes;
    return {{},
            {.device = 0,
             .base = memory[0].data(),
             .bytes = bytes,
             .in = into_first,
             .out = out_of_first,
             .peers = {0, 0, to_first}},
            {.device = 1,
             .base = memory[1].data(),
             .bytes = bytes,
             .in = into_second,
             .out = out_of_second,
             .peers = {0, to_second, 0}}};
  }
  void begin(double second_rate) {
    machine_ = machine(second_rate);
    memory_.emplace(instructions_, machine_, resources(), *this, *this, MemoryOptions{});
  }
  TileId add() {
    return memory_->replicas().add({.home = home_.data(),
                                    .width_bytes = tile_bytes,
                                    .columns = 1,
                                    .pitch = tile_bytes,
                                    .home_space = host_space});
  }
  void stage(TileId tile, SpaceId space, Access access = Access::read) {
    const Need need{tile, access};
    ASSERT_TRUE(is_done(memory_->staging().stage({&need, 1}, space)));
  }
  /// By a task on a device that has ended.
  TileId written(SpaceId space) {
    const TileId tile = add();
    stage(tile, space, Access::write);
    memory_->used(tile, space, Access::write, {6, ++kernels_});
    memory_->residency().unpin(tile, space);
    memory_->transfers().confirm(tile);
    return tile;
  }
  /// No task writes it again.
  void write_final_of(TileId tile) {
    finals_.insert(tile);
    memory_->final_writes().write(tile);
  }
  void write_final(SpaceId space) { write_final_of(written(space)); }
  /// Copies on a stream that haven't ended.
  std::ptrdiff_t under_way(StreamId stream) {
    for (const Instruction& each : instructions_.pending())
      if (each.ticket > 0) copies_.push_back({each.stream, each.ticket});
    instructions_.clear();
    return std::ranges::count(copies_, stream, [](const Event& event) { return event.stream; });
  }
  /// The oldest of a stream.
  void end(StreamId stream) {
    ASSERT_GT(under_way(stream), 0);
    const auto oldest =
        std::ranges::find(copies_, stream, [](const Event& event) { return event.stream; });
    Completion completion;
    completion.event = *oldest;
    completion.error = error_;
    copies_.erase(oldest);
    memory_->completed(completion);
  }

  std::set<TileId> finals_;
  std::exception_ptr error_;  ///< Of copies that end.
  std::vector<Event> copies_;
  std::uint64_t kernels_ = 0;
  std::vector<std::byte> home_ = std::vector<std::byte>(tile_bytes);
  Machine machine_;
  Instructions instructions_;
  std::optional<Memory> memory_;
};

TEST_F(RelayTest, ASlowLinkIsLeftOut) {
  begin(10e6);
  const TileId tile = add();
  stage(tile, 2);
  EXPECT_EQ(under_way(into_first), 1);
  EXPECT_EQ(under_way(to_second), 1);
  EXPECT_EQ(under_way(into_second), 0);
  end(into_first), end(to_second);
  EXPECT_TRUE(memory_->directory().arrived(tile, 2));
}

TEST_F(RelayTest, ALostDeviceIsNoWay) {
  begin(10e6);
  const TileId tile = add();
  std::vector<TileId> lost;
  memory_->space_lost(1, lost);
  stage(tile, 2);
  EXPECT_EQ(under_way(into_second), 1);
  EXPECT_EQ(under_way(into_first), 0);
}

TEST_F(RelayTest, NothingIsFetchedAheadByWayOfTheHostFromADeviceThatIsProbed) {
  begin(10e6);
  std::erase_if(machine_.routes, [](const Route& route) {
    return route.from != host_space && route.to != host_space;
  });
  memory_.emplace(instructions_, machine_, resources(), *this, *this, MemoryOptions{});
  const TileId tile = add();
  stage(tile, 1, Access::write);
  memory_->used(tile, 1, Access::write, {6, ++kernels_});
  memory_->transfers().confirm(tile);
  memory_->transfers().probe(1);
  EXPECT_TRUE(awaits(memory_->staging().prefetch(tile, 2, 0, {}), Awaits::source));
  EXPECT_EQ(under_way(out_of_first), 1) << "but the probe itself";
  end(out_of_first);
  EXPECT_TRUE(is_done(memory_->staging().prefetch(tile, 2, 0, {})));
  EXPECT_EQ(under_way(out_of_first), 1);
}

TEST_F(RelayTest, UntilTheOtherHasAsMuchToDo) {
  begin(10e6);
  for (int i = 0; i < 14; ++i) {
    const TileId tile = add();
    stage(tile, 2);
    memory_->residency().unpin(tile, 2);
  }
  EXPECT_GE(under_way(into_second), 1);
  EXPECT_GE(under_way(into_first), 7) << "until half of its memory is in use";
}

TEST_F(RelayTest, EqualLinksWorkForThemselves) {
  begin(100e6);
  for (int i = 0; i < 8; ++i) stage(add(), 2);
  EXPECT_EQ(under_way(into_second), 8);
  EXPECT_EQ(under_way(into_first), 0);
}

TEST_F(RelayTest, WhatIsFinalGoesHomeByTheQuickerLink) {
  begin(10e6);
  for (int i = 0; i < 3; ++i) write_final(2);
  EXPECT_EQ(under_way(out_of_second), 0) << "its own, though it is free";
  EXPECT_EQ(under_way(to_first), 3);
  EXPECT_EQ(under_way(out_of_first), 0);
  for (int i = 0; i < 3; ++i) end(to_first);
  EXPECT_EQ(under_way(out_of_first), 3);
  for (int i = 0; i < 3; ++i) end(out_of_first);
  EXPECT_EQ(under_way(out_of_second), 0);
  for (const TileId tile : finals_) EXPECT_EQ(memory_->directory().owner(tile), no_space);
}

// An operand on its way to another device goes home from there, once it has arrived.
TEST_F(RelayTest, WhatIsFinalWaitsForAReplicaBehindAQuickerLink) {
  begin(10e6);
  const TileId tile = written(2);
  stage(tile, 1);
  write_final_of(tile);
  EXPECT_EQ(under_way(to_first), 1);
  EXPECT_EQ(under_way(out_of_second), 0);
  end(to_first);
  EXPECT_EQ(under_way(out_of_first), 1);
  EXPECT_EQ(under_way(out_of_second), 0);
}

TEST_F(RelayTest, BehindAnEqualLinkNothingFinalIsWaitedFor) {
  begin(100e6);
  const TileId tile = written(2);
  stage(tile, 1);
  write_final_of(tile);
  EXPECT_EQ(under_way(out_of_second), 1);
  end(to_first);
  EXPECT_EQ(under_way(out_of_first), 0);
}

// What waits for another device stands behind six tiles, longer than its own link takes.
TEST_F(RelayTest, AReplicaBehindALongQueueIsNotWaitedFor) {
  machine_ = machine(10e6);
  for (Link& link : machine_.links)
    if (link.name.find("peer") != std::string::npos) link.bytes_per_second = 50e6;
  memory_.emplace(instructions_, machine_, resources(), *this, *this, MemoryOptions{});
  std::vector<TileId> queued;
  for (int i = 0; i < 7; ++i) queued.push_back(written(2));
  for (const TileId tile : queued) stage(tile, 1);
  write_final_of(queued.back());
  EXPECT_EQ(under_way(out_of_second), 1);
}

TEST_F(RelayTest, AWayThatFailedIsNotTriedAgain) {
  begin(10e6);
  write_final(2);
  ASSERT_EQ(under_way(to_first), 1);
  error_ = std::make_exception_ptr(std::runtime_error("broken link"));
  end(to_first);
  EXPECT_EQ(under_way(to_first), 0);
  EXPECT_EQ(under_way(out_of_second), 1);
}

// Its new writer has not ended: what it leaves is certain, and goes home, only then.
TEST_F(RelayTest, WhatIsWrittenAgainDoesntGoHomeWhenItsOldWayFails) {
  begin(10e6);
  const TileId tile = written(2);
  write_final_of(tile);
  ASSERT_EQ(under_way(to_first), 1);
  stage(tile, 2, Access::update);
  memory_->used(tile, 2, Access::update, {6, ++kernels_});
  memory_->residency().unpin(tile, 2);
  error_ = std::make_exception_ptr(std::runtime_error("broken link"));
  end(to_first);
  EXPECT_EQ(under_way(out_of_second), 0);
}

// It would fail at once, again and again, before the probe's turn has come.
TEST_F(RelayTest, NothingIsFetchedFromADeviceThatIsProbed) {
  begin(100e6);
  const TileId tile = written(2);
  memory_->transfers().probe(2);
  const Need need{tile, Access::read};
  EXPECT_TRUE(awaits(memory_->staging().stage({&need, 1}, 1), Awaits::source));
  EXPECT_EQ(under_way(to_first), 0);
  end(out_of_second);
  stage(tile, 1);
  EXPECT_EQ(under_way(to_first), 1);
}

TEST_F(RelayTest, WhatIsFinalStaysOnADeviceThatIsProbed) {
  begin(10e6);
  const TileId tile = written(2);
  memory_->transfers().probe(2);
  const std::ptrdiff_t probes = under_way(out_of_second);
  write_final_of(tile);
  EXPECT_EQ(under_way(to_first), 0);
  EXPECT_EQ(under_way(out_of_second), probes);
}

}  // namespace
}  // namespace quadriga
