// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/eviction_test.cpp: who leaves first, and what fragmentation asks for.
#include "memory/eviction.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "memory/arena.h"

namespace quadriga {
namespace {

constexpr std::size_t tile_bytes = 1024;

/// An arena with a block for each candidate, in order of their numbers.
class EvictionTest : public ::testing::Test {
 protected:
  Candidate& add(std::size_t bytes = tile_bytes) {
    candidates_.push_back({.tile = static_cast<TileId>(candidates_.size()),
                           .offset = *arena_.allocate(bytes),
                           .bytes = arena_.rounded(bytes)});
    return candidates_.back();
  }
  void use(std::initializer_list<std::uint64_t> next_uses) {
    for (const std::uint64_t next_use : next_uses) add().next_use = next_use;
  }
  /// A block that must stay.
  void pinned(std::size_t bytes = tile_bytes) { arena_.allocate(bytes); }
  void fill() {
    while (arena_.allocate(256)) continue;
  }
  std::vector<TileId> choose(const EvictionRule& rule, std::size_t bytes = tile_bytes,
                             std::size_t most = 8) {
    std::vector<TileId> victims(most);
    victims.resize(choose_victims(rule, arena_, candidates_, bytes, victims));
    return victims;
  }

  using Tiles = std::vector<TileId>;
  Arena arena_{64 * tile_bytes};
  std::vector<Candidate> candidates_;
  FarthestUse farthest_{10};
};

TEST_F(EvictionTest, TheFarthestNextUseLeaves) {
  use({7, 30, 12});
  fill();
  EXPECT_EQ(choose(farthest_), Tiles{1});
}

TEST_F(EvictionTest, NoKnownUseIsFarthestAndThenTheLeastRecentlyUsed) {
  use({7, no_next_use, no_next_use});
  candidates_[1].last_use = 5;
  candidates_[2].last_use = 4;
  fill();
  EXPECT_EQ(choose(farthest_), Tiles{2});
}

TEST_F(EvictionTest, CleanBeforeFinalBeforeDirtyAmongEquals) {
  use({9, 9, 9});
  candidates_[0].dirty = candidates_[1].dirty = candidates_[1].final = true;
  fill();
  EXPECT_EQ(choose(farthest_), Tiles{2});
  candidates_.pop_back();
  EXPECT_EQ(choose(farthest_), Tiles{1});
}

TEST_F(EvictionTest, ADirtyTileIsChargedItsWriteBack) {
  use({100, 90});
  candidates_[0].dirty = true;
  fill();
  candidates_[0].write_back_seconds = 0.9;
  EXPECT_EQ(choose(farthest_), Tiles{0}) << "91 positions are still farther than 90";
  candidates_[0].write_back_seconds = 1.1;
  EXPECT_EQ(choose(farthest_), Tiles{1});
  EXPECT_EQ(choose(FarthestUse(0)), Tiles{0}) << "without a charge";
}

TEST_F(EvictionTest, ADirtyTileThatNoOneNeedsLeavesBeforeACleanOneThatSomeoneDoes) {
  use({no_next_use, 1000000});
  candidates_[0].dirty = true;
  candidates_[0].write_back_seconds = 1e9;
  fill();
  EXPECT_EQ(choose(farthest_), Tiles{0});
}

TEST_F(EvictionTest, AmongTilesThatNoOneNeedsTheChargeCountsAsRecency) {
  use({no_next_use, no_next_use});
  candidates_[0].last_use = 50;
  candidates_[1].last_use = 55;
  candidates_[0].dirty = true;
  fill();
  candidates_[0].write_back_seconds = 0.4;
  EXPECT_EQ(choose(farthest_), Tiles{0});
  candidates_[0].write_back_seconds = 0.6;
  EXPECT_EQ(choose(farthest_), Tiles{1});
}

TEST_F(EvictionTest, AChargeWithoutBoundIsNoOverflow) {
  use({100, 90});
  candidates_[0].dirty = true;
  candidates_[0].write_back_seconds = std::numeric_limits<double>::infinity();
  fill();
  EXPECT_EQ(choose(farthest_), Tiles{1});
  EXPECT_EQ(choose(FarthestUse(0)), Tiles{1});
}

TEST_F(EvictionTest, LruLooksBackOnly) {
  use({5, 900, 7});
  candidates_[0].last_use = 3;
  candidates_[1].last_use = 8;
  candidates_[2].last_use = 3;
  candidates_[0].dirty = true;
  fill();
  EXPECT_EQ(choose(Lru()), Tiles{2});
}

TEST_F(EvictionTest, WhatIsOnlyReadLeavesBeforeWhatMustBeWrittenBack) {
  use({5, 900, 7, 8});
  candidates_[0].last_use = 1;
  candidates_[0].dirty = true;
  candidates_[1].last_use = 9;
  candidates_[2].last_use = 8;
  candidates_[3].last_use = 2;
  candidates_[3].dirty = true;
  fill();
  EXPECT_EQ(choose(ReadFirst()), Tiles{2});
  candidates_[1].dirty = candidates_[2].dirty = true;
  EXPECT_EQ(choose(ReadFirst()), Tiles{0});
}

TEST_F(EvictionTest, AmongEqualsTheSmallestThatFits) {
  add(2 * tile_bytes);
  add(tile_bytes / 2);
  add(tile_bytes);
  fill();
  EXPECT_EQ(choose(farthest_, tile_bytes), Tiles{2});
  EXPECT_EQ(choose(farthest_, tile_bytes / 4), Tiles{1});
  EXPECT_EQ(choose(farthest_, tile_bytes + 1), Tiles{0});
}

TEST_F(EvictionTest, FreeNeighboursCount) {
  const std::size_t gap = *arena_.allocate(tile_bytes);
  add().next_use = 10;
  pinned();
  add(2 * tile_bytes).next_use = 5;
  fill();
  arena_.deallocate(gap);
  EXPECT_EQ(choose(farthest_, 2 * tile_bytes), Tiles{0});
}

TEST_F(EvictionTest, NeighboursLeaveTogetherIfNoSingleOneFits) {
  use({10, 40});
  pinned();
  use({30, 20, 25});
  fill();
  EXPECT_EQ(choose(farthest_, 2 * tile_bytes), (Tiles{2, 3})) << "20 is farther than 10";
  EXPECT_EQ(choose(farthest_, 3 * tile_bytes), (Tiles{2, 3, 4}));
  EXPECT_EQ(choose(farthest_, 4 * tile_bytes), Tiles{}) << "a pinned block is between";
  EXPECT_EQ(choose(farthest_, 3 * tile_bytes, 2), Tiles{}) << "more than asked for";
}

TEST_F(EvictionTest, AStretchSpansFreeBlocks) {
  add().next_use = 10;
  const std::size_t gap = *arena_.allocate(tile_bytes);
  add().next_use = 20;
  fill();
  arena_.deallocate(gap);
  EXPECT_EQ(choose(farthest_, 3 * tile_bytes), (Tiles{0, 1}));
  EXPECT_EQ(choose(farthest_, 2 * tile_bytes), Tiles{1});
}

TEST_F(EvictionTest, ALargeTileThatIsNeededLaterBeatsSmallOnesThatAreNeededSooner) {
  add(2 * tile_bytes).next_use = 15;
  pinned();
  use({10, 40});
  fill();
  EXPECT_EQ(choose(farthest_, 2 * tile_bytes), Tiles{0});
  candidates_[1].next_use = 16;
  EXPECT_EQ(choose(farthest_, 2 * tile_bytes), (Tiles{1, 2}));
}

TEST_F(EvictionTest, TheOrderOfTheCandidatesDoesNotMatter) {
  use({10, 30, 20});
  fill();
  std::swap(candidates_[0], candidates_[2]);
  EXPECT_EQ(choose(farthest_, 2 * tile_bytes), (Tiles{1, 2}));
}

TEST_F(EvictionTest, NothingToChooseFrom) {
  fill();
  EXPECT_EQ(choose(farthest_), Tiles{});
}

TEST_F(EvictionTest, TheBestSparedComeInOrder) {
  use({7, 30, 12, 50, 12});
  const std::span<Candidate> best = best_victims(farthest_, candidates_, 4);
  ASSERT_EQ(best.size(), 4u);
  EXPECT_EQ(best[0].tile, 3u);
  EXPECT_EQ(best[1].tile, 1u);
  EXPECT_EQ(best[2].tile, 2u);
  EXPECT_EQ(best[3].tile, 4u);
  EXPECT_EQ(best_victims(farthest_, candidates_, 9).size(), 5u);
}

TEST_F(EvictionTest, WhereTheyLieDoesNotMatterAnywhere) {
  use({7, 30, 12, 50});
  ASSERT_EQ(choose_anywhere(farthest_, candidates_, tile_bytes + 1), 2u);
  EXPECT_EQ(candidates_[0].tile, 3u);
  EXPECT_EQ(candidates_[1].tile, 1u);
  EXPECT_EQ(choose_anywhere(farthest_, candidates_, 4 * tile_bytes), 4u);
  EXPECT_EQ(choose_anywhere(farthest_, candidates_, 4 * tile_bytes + 1), 0u) << "all have less";
}

}  // namespace
}  // namespace quadriga
