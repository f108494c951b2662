// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/link_tokens_test.cpp: each direction of a link has tokens of its own, which
// copies give back however they end. No backend: copies end when the test says so.
#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "base/random.h"
#include "device/reference_machine.h"
#include "memory/memory.h"

namespace quadriga {
namespace {

constexpr std::size_t tile_bytes = 4096;
constexpr std::size_t tiles = 32;

TEST(LinkTokens, AnIdleLinkTakesAnyCopyAndABusyOneAsMuchAsIsSoonDone) {
  for (const LinkTokens tokens : {tokens_to_device, tokens_to_host(Machine::parse("emulated:2"))}) {
    EXPECT_TRUE(tokens.are_left(tokens.copies - 1, 10));
    EXPECT_TRUE(tokens.are_left(tokens.copies, tokens.seconds));
    EXPECT_FALSE(tokens.are_left(tokens.copies, 1.01 * tokens.seconds));
    EXPECT_TRUE(tokens.are_left(20, 0.5 * tokens.seconds)) << "short ones keep it busy";
  }
}

TEST(LinkTokens, ASlowerHostQueuesMoreThatGoesHome) {
  Machine machine = Machine::parse("emulated:2");
  machine.planning = {.engine_seconds = 1e-4, .task_seconds = 3e-6};
  machine.launch_seconds = 2e-6;
  const double quick = tokens_to_host(machine).seconds;
  machine.planning.task_seconds *= 10;
  machine.launch_seconds *= 10;
  EXPECT_DOUBLE_EQ(tokens_to_host(machine).seconds, 10 * quick);
  machine.planning = {};
  machine.launch_seconds = 0;
  EXPECT_EQ(tokens_to_host(machine).seconds, tokens_to_host(reference_machine()).seconds)
      << "nobody has measured that host";
}

/// Two devices of 32 tiles. A tile takes 410 us from the host, and 4 us between devices.
class LinkTokensTest : public ::testing::Test, public TileForecast, public MemoryListener {
 protected:
  struct Way {
    SpaceId from = 0;
    SpaceId to = 0;
    StreamId stream = 0;
    std::deque<TileId> tiles;  ///< In flight.
    std::uint64_t ended = 0;
  };

  std::uint64_t next_use(TileId, SpaceId) const override { return no_next_use; }
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
             .out = 1,
             .peers = {0, 0, 2}},
            {.device = 1,
             .base = memory[1].data(),
             .bytes = bytes,
             .in = 3,
             .out = 4,
             .peers = {0, 5, 0}}};
  }
  bool is_busy(TileId tile) const {
    return std::ranges::any_of(ways_, [&](const Way& way) {
      return std::ranges::find(way.tiles, tile) != way.tiles.end();
    });
  }
  /// A copy of some tile that is at one end and not at the other, if there is one.
  void begin(Way& way) {
    for (TileId tile = 0; tile < tiles; ++tile) {
      const Directory& directory = memory_.directory();
      if (is_busy(tile) || !directory.valid(tile, way.from) || directory.valid(tile, way.to))
        continue;
      ASSERT_TRUE(memory_.residency().allocate(tile, way.to));
      memory_.transfers().queue(tile, way.from, way.to, Reason::stage);
      return way.tiles.push_back(tile);
    }
  }
  void end(Way& way, std::exception_ptr error = nullptr) {
    if (way.tiles.empty()) return;
    way.tiles.pop_front();
    memory_.completed({.event = {way.stream, ++way.ended}, .error = std::move(error)});
    instructions_.clear();
  }
  void expect_tokens() {
    for (const Way& way : ways_) {
      const double seconds =
          memory_.transfers().seconds(way.from, way.to, way.tiles.size() * tile_bytes);
      EXPECT_EQ(memory_.transfers().has_token(way.from, way.to),
                tokens_to_device.are_left(way.tiles.size(), seconds))
          << way.tiles.size() << " copies from " << way.from << " to " << way.to;
    }
  }

  std::vector<std::byte> home_ = std::vector<std::byte>(tile_bytes * tiles);
  Machine machine_ = Machine::parse("emulated:2,memory=1MiB,h2d=10MB/s,d2h=10MB/s,peer=1GB/s");
  Instructions instructions_;
  Memory memory_{instructions_, machine_, resources(), *this, *this, {}};
  std::vector<Way> ways_{{0, 1, 0, {}}, {0, 2, 3, {}}, {1, 2, 5, {}}, {2, 1, 2, {}}};
};

TEST_F(LinkTokensTest, EachDirectionHasItsOwnAndGetsThemBack) {
  for (std::size_t i = 0; i < tiles; ++i)
    memory_.replicas().add({.home = home_.data() + i * tile_bytes,
                            .width_bytes = tile_bytes,
                            .columns = 1,
                            .pitch = tile_bytes,
                            .home_space = host_space});
  Random random(7);
  std::size_t without = 0;
  for (int step = 0; step < 500; ++step) {
    Way& way = ways_[random.below(ways_.size())];
    if (way.tiles.size() < 5 && random.chance(0.6))
      begin(way);
    else
      end(way, random.chance(0.2) ? std::make_exception_ptr(Error(Errc::io, "lost")) : nullptr);
    expect_tokens();
    without += !memory_.transfers().has_token(host_space, 1);
    for (TileId tile = 0; tile < tiles; ++tile)
      if (random.chance(0.2) && !is_busy(tile)) memory_.residency().evict(tile);
  }
  EXPECT_GT(without, 20u) << "the test never came to the limit";
  for (Way& way : ways_)
    while (!way.tiles.empty()) {
      end(way);
      expect_tokens();
    }
  for (const Way& way : ways_) EXPECT_TRUE(memory_.transfers().has_token(way.from, way.to));
  memory_.validate();
}

}  // namespace
}  // namespace quadriga
