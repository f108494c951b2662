// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/residency_test.cpp: who leaves a device's memory, by plan and link; what is
// refused. No backend: copies end when the test says so.
#include "memory/residency.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <array>
#include <map>
#include <vector>

#include "memory/memory.h"

namespace quadriga {
namespace {

constexpr std::size_t tile_bytes = 4096;

/// Two devices that hold two tiles each; 1 GB/s to the host, 1000 GB/s between them.
class ResidencyTest : public ::testing::Test, public TileForecast, public MemoryListener {
 protected:
  std::uint64_t next_use(TileId tile, SpaceId) const override {
    const auto found = next_uses_.find(tile);
    return found == next_uses_.end() ? no_next_use : found->second;
  }
  double positions_per_second(SpaceId) const override { return rate_; }
  bool is_final(TileId tile) const override { return tile == final_; }
  void copy_ended(StreamId, Reason, TileId, SpaceId, SpaceId, std::size_t,
                  const Completion&) override {}
  void evicted(TileId tile, SpaceId) override { evicted_.push_back(tile); }
  void probed(SpaceId, const Completion&) override {}

  static std::vector<SpaceResources> resources() {
    static std::array<std::array<std::byte, 2 * tile_bytes>, 2> memory;
    const std::size_t bytes = 2 * tile_bytes;
    return {{},
            {.device = 0,
             .base = memory[0].data(),
             .bytes = bytes,
             .in = 0,
             .out = 1,
             .peers = {0, 0, 2}},
            {.device = 1,
             .base = memory[1].data(),
             .bytes = bytes,
             .in = 3,
             .out = 4,
             .peers = {0, 5, 0}}};
  }
  TileId add(SpaceId home_space = host_space, std::uint64_t next_use = no_next_use) {
    const TileId tile = memory_.replicas().add({.home = home_.data(),
                                                .width_bytes = tile_bytes,
                                                .columns = 1,
                                                .pitch = tile_bytes,
                                                .home_space = home_space});
    if (next_use != no_next_use) next_uses_[tile] = next_use;
    return tile;
  }
  /// A task on device 0 that has ended.
  void run(TileId tile, Access access) {
    const Need need{tile, access};
    ASSERT_TRUE(is_done(memory_.staging().stage({&need, 1}, 1)));
    end_copies();
    memory_.used(tile, 1, access, {6, ++kernels_});
    if (writes(access)) memory_.transfers().confirm(tile);
    memory_.residency().unpin(tile, 1);
  }
  void end_copies() {
    for (const Instruction& each : instructions_.pending())
      if (each.ticket > 0) copies_.push_back({each.stream, each.ticket});
    instructions_.clear();
    for (const Event event : copies_) {
      Completion completion;
      completion.event = event;
      memory_.completed(completion);
    }
    copies_.clear();
  }
  /// Who leaves, or begins to, so that one more tile has room.
  TileId victim() {
    evicted_.clear();
    const Awaits awaited = memory_.evictor().make_room(tile_bytes, 1);
    EXPECT_EQ(awaited, evicted_.empty() ? Awaits::room : Awaits::nothing);
    if (!evicted_.empty()) return evicted_.front();
    for (const TileId tile : memory_.pool(1).residents())
      if (memory_.directory().in_flight(tile, memory_.directory().home(tile))) return tile;
    return no_tile;
  }

  std::map<TileId, std::uint64_t> next_uses_;
  double rate_ = 0;
  TileId final_ = no_tile;
  std::vector<TileId> evicted_;
  std::vector<Event> copies_;
  std::uint64_t kernels_ = 0;
  std::vector<std::byte> home_ = std::vector<std::byte>(tile_bytes);
  Machine machine_ = Machine::parse("emulated:2,memory=1MiB,h2d=1GB/s,d2h=1GB/s,peer=1000GB/s");
  Instructions instructions_;
  Memory memory_{instructions_, machine_, resources(), *this, *this, {}};
};

TEST_F(ResidencyTest, WriteBacksAreChargedByTheRateOfThePlan) {
  const TileId dirty = add(host_space, 100), clean = add(host_space, 90);
  run(dirty, Access::update);
  run(clean, Access::read);
  rate_ = 100 / machine_.copy_seconds(1, host_space, tile_bytes);
  EXPECT_EQ(victim(), clean);
}

TEST_F(ResidencyTest, WithoutARateTheFarthestLeaves) {
  const TileId dirty = add(host_space, 100), clean = add(host_space, 90);
  run(dirty, Access::update);
  run(clean, Access::read);
  EXPECT_EQ(victim(), dirty);
}

TEST_F(ResidencyTest, WriteBacksAreChargedByTheLinkThatTheyTake) {
  const TileId near = add(2, 100), far = add(host_space, 100);
  run(far, Access::update);
  run(near, Access::update);
  rate_ = 50 / machine_.copy_seconds(1, host_space, tile_bytes);
  EXPECT_EQ(victim(), near) << "its home is on the other device, by a faster link";
}

TEST_F(ResidencyTest, WhatGoesHomeAnywayLeavesFirstAmongEquals) {
  const TileId other = add(host_space, 100), final = add(host_space, 100);
  run(other, Access::update);
  run(final, Access::update);
  memory_.replicas().at(other, 1).last_use = memory_.replicas().at(final, 1).last_use;
  final_ = final;
  EXPECT_EQ(victim(), final);
}

TEST_F(ResidencyTest, WhatIsPinnedStays) {
  const std::array needs{Need{add(), Access::read}, Need{add(), Access::read}};
  ASSERT_TRUE(is_done(memory_.staging().stage(needs, 1)));
  end_copies();
  EXPECT_EQ(memory_.evictor().make_room(tile_bytes, 1), Awaits::room);
  EXPECT_TRUE(evicted_.empty());
}

TEST_F(ResidencyTest, StagingSaysWhatItAwaitsAndWhatItRefuses) {
  const TileId unwritten = memory_.replicas().add({.width_bytes = tile_bytes, .columns = 1});
  Need need{unwritten, Access::read};
  EXPECT_EQ(memory_.staging().stage({&need, 1}, 1), Outcome(Refusal::unwritten));
  const std::array needs{Need{add(), Access::read}, Need{add(), Access::read}};
  ASSERT_TRUE(is_done(memory_.staging().stage(needs, 1)));
  need.tile = add();
  EXPECT_EQ(memory_.staging().stage({&need, 1}, 1), Outcome(Awaits::room));
  std::vector<TileId> lost;
  const TileId gone = add(2);
  memory_.space_lost(2, lost);
  need.tile = gone;
  EXPECT_EQ(memory_.staging().stage({&need, 1}, 1), Outcome(Refusal::home_lost));
}

TEST_F(ResidencyTest, NothingGoesHomeBeforeItsProducerHasEnded) {
  const TileId tile = add();
  const Need need{tile, Access::write};
  ASSERT_TRUE(is_done(memory_.staging().stage({&need, 1}, 1)));
  memory_.used(tile, 1, Access::write, {6, ++kernels_});
  EXPECT_THROW(memory_.write_backs().write_back(tile, Reason::final), Error);
  EXPECT_EQ(memory_.directory().owner(tile), 1u) << "nothing was queued";
  memory_.transfers().confirm(tile);
  EXPECT_TRUE(memory_.write_backs().write_back(tile, Reason::final));
  EXPECT_EQ(memory_.directory().owner(tile), no_space);
}

TEST_F(ResidencyTest, CleaningAheadLeavesWhatATaskNeeds) {
  const TileId needed = add(host_space, 5), idle = add();
  run(needed, Access::update);
  run(idle, Access::update);
  ASSERT_FALSE(memory_.residency().has_plenty(1));
  for (int i = 0; i < 2; ++i) memory_.write_backs().clean_ahead(1);
  EXPECT_EQ(memory_.directory().owner(idle), no_space) << "it goes home";
  EXPECT_EQ(memory_.directory().owner(needed), 1u);
}

TEST_F(ResidencyTest, NothingGoesHomeFromADeviceThatMayBeGone) {
  const TileId tile = add();
  run(tile, Access::update);
  memory_.transfers().probe(1);
  EXPECT_TRUE(memory_.write_backs().write_back(tile, Reason::write_back));
  EXPECT_EQ(memory_.directory().owner(tile), 1u) << "nothing was queued";
  end_copies();
  EXPECT_TRUE(memory_.write_backs().write_back(tile, Reason::write_back));
  EXPECT_EQ(memory_.directory().owner(tile), no_space);
}

}  // namespace
}  // namespace quadriga
