// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/write_final_test.cpp: which link brings home what won't change, and when. No
// backend: copies end when the test says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "memory/memory.h"

namespace quadriga {
namespace {

constexpr std::size_t tile_bytes = 4096;
constexpr std::size_t tiles = 16;
constexpr StreamId out_of_first = 1;
constexpr StreamId out_of_second = 4;

/// Two devices of sixteen tiles. A tile takes 410 us to the host.
class WriteFinalTest : public ::testing::Test, public TileForecast, public MemoryListener {
 protected:
  std::uint64_t next_use(TileId, SpaceId) const override { return no_next_use; }
  double positions_per_second(SpaceId) const override { return 0; }
  bool is_final(TileId tile) const override { return finals_.contains(tile); }
  void copy_ended(StreamId, Reason, TileId, SpaceId, SpaceId, std::size_t,
                  const Completion&) override {}
  void evicted(TileId, SpaceId) override {}
  void probed(SpaceId, const Completion&) override {}

  static std::vector<SpaceResources> resources() {
    static std::array<std::array<std::byte, tiles * tile_bytes>, 2> memory;
    const std::size_t bytes = tiles * tile_bytes;
    return {{},
            {.device = 0,
             .base = memory[0].data(),
             .bytes = bytes,
             .in = 0,
             .out = out_of_first,
             .peers = {0, 0, 2}},
            {.device = 1,
             .base = memory[1].data(),
             .bytes = bytes,
             .in = 3,
             .out = out_of_second,
             .peers = {0, 5, 0}}};
  }
  /// Written by a task on the first device that has ended.
  TileId written() {
    const TileId tile = memory_.replicas().add({.home = home_.data(),
                                                .width_bytes = tile_bytes,
                                                .columns = 1,
                                                .pitch = tile_bytes,
                                                .home_space = host_space});
    use(tile, 1, Access::write);
    memory_.transfers().confirm(tile);
    finals_.insert(tile);
    return tile;
  }
  void use(TileId tile, SpaceId space, Access access) {
    const Need need{tile, access};
    ASSERT_TRUE(is_done(memory_.staging().stage({&need, 1}, space)));
    end(2), end(5);  // copies between the devices
    memory_.used(tile, space, access, {6, ++kernels_});
    memory_.residency().unpin(tile, space);
  }
  void write_final(TileId tile) { memory_.final_writes().write(tile); }
  /// Copies on a stream that haven't ended.
  std::size_t under_way(StreamId stream) {
    for (const Instruction& each : instructions_.pending())
      if (each.ticket > 0) copies_.push_back({each.stream, each.ticket});
    instructions_.clear();
    return static_cast<std::size_t>(
        std::ranges::count(copies_, stream, [](const Event& event) { return event.stream; }));
  }
  /// The oldest of a stream, if any.
  void end(StreamId stream) {
    if (under_way(stream) == 0) return;
    const auto oldest =
        std::ranges::find(copies_, stream, [](const Event& event) { return event.stream; });
    Completion completion;
    completion.event = *oldest;
    copies_.erase(oldest);
    memory_.completed(completion);
  }

  std::set<TileId> finals_;
  std::vector<Event> copies_;
  std::uint64_t kernels_ = 0;
  std::vector<std::byte> home_ = std::vector<std::byte>(tile_bytes);
  Machine machine_ = Machine::parse("emulated:2,memory=1MiB,h2d=1GB/s,d2h=10MB/s,peer=1000GB/s");
  Instructions instructions_;
  Memory memory_{instructions_, machine_, resources(), *this, *this, {}};
};

TEST_F(WriteFinalTest, ALinkGetsTheNextOnceItHasRoom) {
  for (int i = 0; i < 4; ++i) write_final(written());
  EXPECT_EQ(under_way(out_of_first), 2u);
  EXPECT_FALSE(memory_.transfers().has_token(1, host_space));
  EXPECT_TRUE(memory_.transfers().has_token(2, host_space)) << "another link";
  end(out_of_first);
  EXPECT_EQ(under_way(out_of_first), 2u) << "the third";
  end(out_of_first), end(out_of_first), end(out_of_first);
  EXPECT_EQ(under_way(out_of_first), 0u);
  for (const TileId tile : finals_) EXPECT_EQ(memory_.directory().owner(tile), no_space);
}

TEST_F(WriteFinalTest, WhatAnotherDeviceHoldsTakesItsLink) {
  write_final(written());
  const TileId shared = written();
  use(shared, 2, Access::read);
  write_final(shared);
  EXPECT_EQ(under_way(out_of_first), 1u);
  EXPECT_EQ(under_way(out_of_second), 1u);
}

TEST_F(WriteFinalTest, WhatIsSharedLaterLeavesTheQueue) {
  for (int i = 0; i < 2; ++i) write_final(written());
  const TileId last = written();
  write_final(last);
  EXPECT_EQ(under_way(out_of_second), 0u);
  use(last, 2, Access::read);
  EXPECT_EQ(under_way(out_of_second), 1u) << "once it has arrived there";
  EXPECT_EQ(under_way(out_of_first), 2u);
}

TEST_F(WriteFinalTest, WhereMemoryIsShortNothingIsPutOff) {
  for (std::size_t i = 0; i < tiles / 2; ++i) written();
  for (const TileId tile : finals_) write_final(tile);
  EXPECT_EQ(under_way(out_of_first), tiles / 2);
}

TEST_F(WriteFinalTest, WhatIsWrittenAgainOrGoneIsLeftAlone) {
  for (int i = 0; i < 2; ++i) write_final(written());
  const TileId changed = written(), gone = written();
  write_final(changed);
  write_final(gone);
  finals_.erase(changed);
  memory_.residency().discard(gone);
  end(out_of_first), end(out_of_first);
  EXPECT_EQ(under_way(out_of_first), 0u);
  EXPECT_EQ(memory_.directory().owner(changed), 1u);
}

}  // namespace
}  // namespace quadriga
