// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/replicas_test.cpp: which replicas of a tile have blocks, and which are
// unconfirmed.
#include "memory/replicas.h"

#include <gtest/gtest.h>

#include <vector>

namespace quadriga {
namespace {

/// Three devices.
class ReplicasTest : public ::testing::Test {
 protected:
  static Machine machine() {
    Machine machine;
    for (SpaceId space = 1; space <= 3; ++space) {
      Device device;
      device.space = space;
      machine.devices.push_back(device);
    }
    return machine;
  }
  TileId add() { return replicas_.add({.home = home_, .width_bytes = 8, .columns = 1}); }
  std::vector<SpaceId> with_blocks(TileId tile) const {
    std::vector<SpaceId> spaces;
    for_each_space(replicas_.blocks(tile), [&](SpaceId space) { spaces.push_back(space); });
    return spaces;
  }

  std::byte home_[16];
  std::byte block_[16];
  Replicas replicas_{machine()};
};

TEST_F(ReplicasTest, BlocksAreKnownBySpace) {
  const TileId one = add();
  const TileId other = add();
  EXPECT_TRUE(with_blocks(one).empty());
  replicas_.give_block(one, 3, block_, any_node);
  replicas_.give_block(one, 1, block_ + 8, any_node);
  EXPECT_EQ(with_blocks(one), (std::vector<SpaceId>{1, 3}));
  EXPECT_TRUE(with_blocks(other).empty());
  EXPECT_TRUE(replicas_.has_block(one, 3));
  EXPECT_FALSE(replicas_.has_block(one, 2));
  EXPECT_EQ(replicas_.address(one, 1), block_ + 8);
  EXPECT_EQ(replicas_.address(one, host_space), home_);
  replicas_.take_block(one, 3);
  EXPECT_EQ(with_blocks(one), (std::vector<SpaceId>{1}));
  EXPECT_FALSE(replicas_.has_memory(one, 3));
}

TEST_F(ReplicasTest, ABlockBeginsWithoutHistory) {
  const TileId tile = add();
  replicas_.at(tile, 2).ready = {1, 5};
  replicas_.at(tile, 2).reads.push_back({1, 4});
  replicas_.set_unconfirmed(tile, 2, true);
  replicas_.give_block(tile, 2, block_, any_node);
  EXPECT_FALSE(replicas_.at(tile, 2).ready);
  EXPECT_TRUE(replicas_.at(tile, 2).reads.empty());
  EXPECT_FALSE(replicas_.unconfirmed(tile, 2));
}

TEST_F(ReplicasTest, AWriterThatEndsConfirmsAllReplicas) {
  const TileId tile = add();
  const TileId other = add();
  for (const SpaceId space : {SpaceId{1}, SpaceId{3}}) {
    replicas_.set_unconfirmed(tile, space, true);
    replicas_.set_unconfirmed(other, space, true);
  }
  EXPECT_TRUE(replicas_.unconfirmed(tile, 3));
  EXPECT_FALSE(replicas_.unconfirmed(tile, 2));
  replicas_.set_unconfirmed(tile, 3, false);
  EXPECT_FALSE(replicas_.unconfirmed(tile, 3));
  EXPECT_TRUE(replicas_.unconfirmed(tile, 1));
  replicas_.set_unconfirmed(tile, 3, true);
  replicas_.confirm(tile);
  EXPECT_FALSE(replicas_.unconfirmed(tile, 1));
  EXPECT_FALSE(replicas_.unconfirmed(tile, 3));
  EXPECT_TRUE(replicas_.unconfirmed(other, 1)) << "another tile";
}

TEST_F(ReplicasTest, ANumberThatIsUsedAgainBeginsAnew) {
  const TileId tile = add();
  replicas_.give_block(tile, 1, block_, any_node);
  replicas_.set_unconfirmed(tile, 1, true);
  replicas_.take_block(tile, 1);
  replicas_.remove(tile);
  ASSERT_EQ(add(), tile);
  EXPECT_TRUE(with_blocks(tile).empty());
  EXPECT_FALSE(replicas_.unconfirmed(tile, 1));
}

}  // namespace
}  // namespace quadriga
