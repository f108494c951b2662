// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/arena_test.cpp: best fit, joining and the figures of an arena.
#include "memory/arena.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <cstdint>
#include <vector>

namespace quadriga {
namespace {

class ArenaTest : public ::testing::Test {
 protected:
  void TearDown() override { arena_.validate(); }
  Arena arena_{4096};
};

TEST_F(ArenaTest, RoundsToItsAlignment) {
  EXPECT_EQ(arena_.rounded(0), 256u);
  EXPECT_EQ(arena_.rounded(1), 256u);
  EXPECT_EQ(arena_.rounded(256), 256u);
  EXPECT_EQ(arena_.rounded(257), 512u);
  EXPECT_EQ(arena_.allocate(300), 0u);
  EXPECT_EQ(arena_.used(), 512u);
  EXPECT_EQ(arena_.allocate(1), 512u);
  EXPECT_EQ(arena_.largest_free(), 4096u - 768u);
}

TEST_F(ArenaTest, FillsUpToTheLastByte) {
  for (int block = 0; block < 16; ++block) EXPECT_TRUE(arena_.allocate(256));
  EXPECT_EQ(arena_.used(), arena_.capacity());
  EXPECT_EQ(arena_.largest_free(), 0u);
  EXPECT_FALSE(arena_.allocate(1));
}

TEST_F(ArenaTest, RefusesWhatNeverFits) {
  EXPECT_FALSE(arena_.allocate(4097));
  EXPECT_FALSE(arena_.allocate(SIZE_MAX));
  EXPECT_TRUE(arena_.allocate(4096));
}

TEST_F(ArenaTest, TakesTheSmallestBlockThatFits) {
  const std::size_t large = *arena_.allocate(1024);
  arena_.allocate(256);
  const std::size_t small = *arena_.allocate(512);
  arena_.allocate(256);
  arena_.deallocate(large);
  arena_.deallocate(small);
  EXPECT_EQ(arena_.allocate(400), small);
  EXPECT_EQ(arena_.allocate(513), large);
}

TEST_F(ArenaTest, ThatIsCutEndsWithItsLastBlock) {
  std::vector<std::size_t> blocks;
  for (int block = 0; block < 4; ++block) blocks.push_back(*arena_.allocate(512));
  arena_.deallocate(blocks[1]);
  arena_.cut();
  arena_.validate();
  EXPECT_EQ(arena_.capacity(), 4 * 512u);
  EXPECT_EQ(arena_.allocate(512), blocks[1]) << "what is free before it stays";
  EXPECT_FALSE(arena_.allocate(256)) << "the rest is gone";
  arena_.cut();
  EXPECT_EQ(arena_.capacity(), 4 * 512u);
  for (const std::size_t block : blocks) arena_.deallocate(block);
  EXPECT_EQ(arena_.largest_free(), 4 * 512u);
  arena_.cut();
  EXPECT_EQ(arena_.capacity(), 0u);
  EXPECT_FALSE(arena_.allocate(1));
}

TEST_F(ArenaTest, JoinsNeighboursWhicheverGoesFirst) {
  std::vector<std::size_t> blocks;
  for (int block = 0; block < 4; ++block) blocks.push_back(*arena_.allocate(1024));
  arena_.deallocate(blocks[0]);
  arena_.deallocate(blocks[2]);
  EXPECT_EQ(arena_.largest_free(), 1024u);
  arena_.deallocate(blocks[1]);
  EXPECT_EQ(arena_.largest_free(), 3072u);
  arena_.deallocate(blocks[3]);
  EXPECT_EQ(arena_.largest_free(), 4096u);
  EXPECT_TRUE(arena_.empty());
}

TEST_F(ArenaTest, TellsTheRoomAroundABlock) {
  const std::size_t first = *arena_.allocate(512);
  const std::size_t second = *arena_.allocate(1024);
  arena_.deallocate(first);
  const Arena::Room room = arena_.room(second);
  EXPECT_EQ(room.before, 512u);
  EXPECT_EQ(room.bytes, 1024u);
  EXPECT_EQ(room.after, 2560u);
  EXPECT_THROW(arena_.room(first), Error);
}

TEST_F(ArenaTest, RefusesToFreeWhatIsNotInUse) {
  const std::size_t block = *arena_.allocate(1024);
  EXPECT_THROW(arena_.deallocate(block + 256), Error);
  arena_.deallocate(block);
  EXPECT_THROW(arena_.deallocate(block), Error);
}

TEST_F(ArenaTest, IsWholeAgainWhenCleared) {
  for (int i = 0; i < 100; ++i) (void)arena_.allocate(256);
  const std::size_t capacity = arena_.capacity();
  arena_.clear();
  arena_.validate();
  EXPECT_TRUE(arena_.empty());
  EXPECT_EQ(arena_.capacity(), capacity);
  EXPECT_EQ(arena_.allocate(capacity), 0u);
}

TEST_F(ArenaTest, LeavesARestThatIsNoUnit) {
  Arena odd(1000, 256);
  EXPECT_EQ(odd.largest_free(), 768u);
  EXPECT_FALSE(odd.allocate(769));
  EXPECT_TRUE(odd.allocate(768));
  odd.validate();
  Arena tiny(100);
  EXPECT_FALSE(tiny.allocate(1));
  tiny.validate();
  EXPECT_THROW(Arena(4096, 100), Error);
}

}  // namespace
}  // namespace quadriga
