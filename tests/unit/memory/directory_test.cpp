// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/directory_test.cpp: each event of the directory, one at a time.
#include "memory/directory.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <array>

namespace quadriga {
namespace {

class DirectoryTest : public ::testing::Test {
 protected:
  void TearDown() override { directory_.validate(); }

  void copy(SpaceId from, SpaceId to) {
    directory_.copy_issued(tile_, from, to);
    directory_.copy_ended(tile_, from, to, true);
  }
  std::array<State, 4> states() const {
    return {directory_.state(tile_, 0), directory_.state(tile_, 1), directory_.state(tile_, 2),
            directory_.state(tile_, 3)};
  }

  using enum State;
  Directory directory_{4};
  TileId tile_ = directory_.add(true);
};

TEST_F(DirectoryTest, ANewTileIsAtHomeOrNowhere) {
  EXPECT_EQ(states(), (std::array{exclusive, invalid, invalid, invalid}));
  EXPECT_TRUE(directory_.written(tile_));
  const TileId blank = directory_.add(false);
  EXPECT_FALSE(directory_.written(blank));
  EXPECT_EQ(directory_.state(blank, host_space), invalid);
  EXPECT_EQ(directory_.owner(blank), no_space);
}

TEST_F(DirectoryTest, RefusesMoreSpacesThanItsMasksHold) {
  EXPECT_THROW(Directory(0), Error);
  EXPECT_THROW(Directory(Directory::max_spaces + 1), Error);
  Directory widest(Directory::max_spaces);
  const TileId tile = widest.add(true);
  widest.write_issued(tile, 63);
  EXPECT_EQ(widest.state(tile, 63), modified);
  widest.validate();
}

TEST_F(DirectoryTest, AReadSharesHome) {
  directory_.copy_issued(tile_, 0, 1);
  EXPECT_EQ(states(), (std::array{shared, shared, invalid, invalid}));
  EXPECT_TRUE(directory_.in_flight(tile_, 1));
  EXPECT_FALSE(directory_.arrived(tile_, 1));
  EXPECT_EQ(directory_.pins(tile_, 0), 1);
  directory_.copy_ended(tile_, 0, 1, true);
  EXPECT_TRUE(directory_.arrived(tile_, 1));
  EXPECT_EQ(directory_.pins(tile_, 0), 0);
  EXPECT_FALSE(directory_.dirty(tile_, 1));
}

TEST_F(DirectoryTest, AWriteLeavesOneReplica) {
  copy(0, 1);
  copy(0, 2);
  directory_.write_issued(tile_, 1);
  EXPECT_EQ(states(), (std::array{invalid, modified, invalid, invalid}));
  EXPECT_EQ(directory_.owner(tile_), 1);
  EXPECT_TRUE(directory_.dirty(tile_, 1));
}

TEST_F(DirectoryTest, AReaderElsewhereMakesTheWriterOwner) {
  directory_.write_issued(tile_, 1);
  copy(1, 2);
  EXPECT_EQ(states(), (std::array{invalid, owned, shared, invalid}));
  EXPECT_FALSE(directory_.dirty(tile_, 1)) << "the other replica could take over";
}

TEST_F(DirectoryTest, WriteBackCleans) {
  directory_.write_issued(tile_, 1);
  directory_.copy_issued(tile_, 1, 0);
  EXPECT_EQ(states(), (std::array{shared, shared, invalid, invalid}));
  EXPECT_EQ(directory_.owner(tile_), no_space);
  EXPECT_TRUE(directory_.dirty(tile_, 1)) << "until the content has arrived at home";
  directory_.copy_ended(tile_, 1, 0, true);
  directory_.dropped(tile_, 1);
  EXPECT_EQ(states(), (std::array{exclusive, invalid, invalid, invalid}));
}

TEST_F(DirectoryTest, AFailedWriteBackMakesTheSourceOwnerAgain) {
  directory_.write_issued(tile_, 1);
  copy(1, 2);
  directory_.copy_issued(tile_, 2, 0);
  directory_.copy_ended(tile_, 2, 0, false);
  EXPECT_EQ(states(), (std::array{invalid, shared, owned, invalid}));
}

TEST_F(DirectoryTest, AFailedCopyLeavesTheRest) {
  directory_.copy_issued(tile_, 0, 1);
  directory_.copy_ended(tile_, 0, 1, false);
  EXPECT_EQ(states(), (std::array{exclusive, invalid, invalid, invalid}));
}

TEST_F(DirectoryTest, AFailedCopyDoesNotHarmWhatWasWrittenMeanwhile) {
  directory_.copy_issued(tile_, 0, 1);
  directory_.write_issued(tile_, 1);
  directory_.copy_ended(tile_, 0, 1, false);
  EXPECT_EQ(states(), (std::array{invalid, modified, invalid, invalid}));
}

TEST_F(DirectoryTest, AnOvertakenCopyIsToldFromTheNextOne) {
  directory_.copy_issued(tile_, 0, 1);
  directory_.write_issued(tile_, 2);
  directory_.copy_issued(tile_, 2, 1);
  directory_.copy_ended(tile_, 0, 1, false);
  EXPECT_EQ(states(), (std::array{invalid, shared, owned, invalid}));
  EXPECT_FALSE(directory_.arrived(tile_, 1));
  directory_.copy_ended(tile_, 2, 1, true);
  EXPECT_TRUE(directory_.arrived(tile_, 1));
}

TEST_F(DirectoryTest, WhatWasForwardedFailsWithItsSource) {
  directory_.write_issued(tile_, 3);
  directory_.copy_issued(tile_, 3, 1);
  directory_.copy_issued(tile_, 1, 2);
  directory_.copy_issued(tile_, 2, 0);
  directory_.copy_ended(tile_, 3, 1, false);
  EXPECT_EQ(states(), (std::array{invalid, invalid, invalid, modified}));
  directory_.copy_issued(tile_, 3, 2);
  directory_.copy_ended(tile_, 1, 2, true);
  EXPECT_FALSE(directory_.arrived(tile_, 2)) << "the copy of nothing isn't the one from 3";
  directory_.copy_ended(tile_, 2, 0, true);
  EXPECT_FALSE(directory_.valid(tile_, 0));
  directory_.copy_ended(tile_, 3, 2, true);
  EXPECT_EQ(states(), (std::array{invalid, invalid, shared, owned}));
}

TEST_F(DirectoryTest, AReplicaThatHasArrivedInheritsFirst) {
  directory_.write_issued(tile_, 3);
  copy(3, 2);
  directory_.copy_issued(tile_, 3, 1);
  directory_.space_lost(3, {});
  EXPECT_EQ(states(), (std::array{invalid, shared, owned, invalid}));
  directory_.copy_ended(tile_, 3, 1, true);
}

TEST_F(DirectoryTest, OwnershipPassesToAReplicaThatHasArrived) {
  directory_.write_issued(tile_, 3);
  directory_.copy_issued(tile_, 3, 1);
  copy(3, 2);
  EXPECT_THROW(directory_.dropped(tile_, 3), Error) << "the copy to 1 still reads it";
  directory_.copy_ended(tile_, 3, 1, true);
  directory_.dropped(tile_, 3);
  EXPECT_EQ(states(), (std::array{invalid, owned, shared, invalid}));
  directory_.dropped(tile_, 2);
  EXPECT_EQ(states(), (std::array{invalid, modified, invalid, invalid}));
}

TEST_F(DirectoryTest, HomeCanBeGivenUpWhenADeviceHasTheContent) {
  copy(0, 2);
  directory_.dropped(tile_, host_space);
  EXPECT_EQ(states(), (std::array{invalid, invalid, modified, invalid}));
}

TEST_F(DirectoryTest, RefusesToLoseContent) {
  EXPECT_THROW(directory_.dropped(tile_, 0), Error);
  directory_.write_issued(tile_, 1);
  EXPECT_THROW(directory_.dropped(tile_, 1), Error);
  directory_.dropped(tile_, 0);  // stale: its memory may go
  copy(1, 2);
  directory_.pin(tile_, 1);
  EXPECT_THROW(directory_.dropped(tile_, 1), Error);
  directory_.unpin(tile_, 1);
  directory_.dropped(tile_, 1);
}

TEST_F(DirectoryTest, RefusesWhatMakesNoSense) {
  EXPECT_THROW(directory_.copy_issued(tile_, 1, 2), Error) << "invalid source";
  EXPECT_THROW(directory_.copy_issued(tile_, 0, 0), Error) << "valid target";
  EXPECT_THROW(directory_.copy_issued(tile_, 0, 4), Error) << "no such space";
  EXPECT_THROW(directory_.copy_ended(tile_, 0, 1, true), Error) << "not in flight";
  EXPECT_THROW(directory_.unpin(tile_, 1), Error);
  EXPECT_THROW(directory_.write_issued(tile_ + 1, 1), Error) << "no such tile";
  EXPECT_EQ(states(), (std::array{exclusive, invalid, invalid, invalid}));
}

TEST_F(DirectoryTest, AnErrorNamesEventTileAndExpectation) {
  try {
    directory_.copy_issued(tile_, 1, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_STREQ(error.what(), "Directory::copy_issued: tile 0: expected the source to be valid");
  }
}

TEST_F(DirectoryTest, ListsSourcesThatHaveArrivedFirst) {
  copy(0, 3);
  directory_.copy_issued(tile_, 0, 1);
  std::array<SpaceId, 4> found{};
  ASSERT_EQ(directory_.sources(tile_, 2, found), 3u);
  EXPECT_EQ(found[0], 0);
  EXPECT_EQ(found[1], 3);
  EXPECT_EQ(found[2], 1);
  EXPECT_EQ(directory_.sources(tile_, 2, std::span(found).first(1)), 1u);
  EXPECT_EQ(directory_.sources(tile_, 0, found), 2u);
  directory_.copy_ended(tile_, 0, 1, true);
}

TEST_F(DirectoryTest, RemovedNumbersAreUsedAgain) {
  const TileId second = directory_.add(true);
  directory_.pin(tile_, 1);
  EXPECT_THROW(directory_.remove(tile_), Error);
  directory_.unpin(tile_, 1);
  directory_.remove(tile_);
  directory_.remove(second);
  EXPECT_THROW(directory_.pin(tile_, 1), Error);
  EXPECT_EQ(directory_.add(false), second);
  EXPECT_EQ(directory_.add(true), tile_);
  EXPECT_EQ(directory_.state(tile_, 0), exclusive);
}

TEST_F(DirectoryTest, LostContentIsNowhere) {
  directory_.write_issued(tile_, 1);
  directory_.copy_issued(tile_, 1, 2);
  directory_.lost(tile_);
  EXPECT_FALSE(directory_.written(tile_));
  directory_.copy_ended(tile_, 1, 2, true);
  EXPECT_FALSE(directory_.valid(tile_, 2));
}

TEST_F(DirectoryTest, ALostSpaceTellsWhatOnlyItHeld) {
  const TileId only_there = directory_.add(false), also_elsewhere = directory_.add(false);
  directory_.write_issued(only_there, 1);
  directory_.write_issued(also_elsewhere, 1);
  directory_.copy_issued(also_elsewhere, 1, 2);
  directory_.copy_issued(tile_, 0, 1);
  directory_.pin(only_there, 1);
  std::array<TileId, 3> lost{};
  ASSERT_EQ(directory_.space_lost(1, lost), 1u);
  EXPECT_EQ(lost[0], only_there);
  EXPECT_EQ(directory_.state(also_elsewhere, 2), modified);
  directory_.validate();
  directory_.unpin(only_there, 1);
  directory_.copy_ended(tile_, 0, 1, false);
  directory_.copy_ended(also_elsewhere, 1, 2, false);
  EXPECT_EQ(states(), (std::array{exclusive, invalid, invalid, invalid}));
  EXPECT_FALSE(directory_.written(also_elsewhere)) << "the last copy of it failed";
  EXPECT_THROW(directory_.copy_issued(tile_, 0, 1), Error) << "nothing goes there any more";
  EXPECT_THROW(directory_.space_lost(1, lost), Error);
  EXPECT_THROW(directory_.space_lost(host_space, lost), Error);
}

TEST_F(DirectoryTest, HomeMayBeOnADevice) {
  tile_ = directory_.add(true, 2);
  EXPECT_EQ(directory_.home(tile_), 2);
  EXPECT_EQ(states(), (std::array{invalid, invalid, exclusive, invalid}));
  copy(2, 1);
  directory_.write_issued(tile_, 1);
  EXPECT_EQ(states(), (std::array{invalid, modified, invalid, invalid}));
  copy(1, 0);
  EXPECT_EQ(states(), (std::array{shared, owned, invalid, invalid})) << "the host isn't home";
  directory_.copy_issued(tile_, 0, 2);
  EXPECT_EQ(states(), (std::array{shared, shared, shared, invalid}));
  directory_.copy_ended(tile_, 0, 2, false);
  EXPECT_EQ(states(), (std::array{owned, shared, invalid, invalid}));
  directory_.write_issued(tile_, 2);
  EXPECT_EQ(states(), (std::array{invalid, invalid, exclusive, invalid}));
  EXPECT_EQ(directory_.owner(tile_), no_space);
  EXPECT_THROW(directory_.add(true, 4), Error) << "no such space";
}

TEST_F(DirectoryTest, WhatIsAtHomeInALostSpaceIsLostWithIt) {
  tile_ = directory_.add(true, 2);
  const TileId blank = directory_.add(false, 2);
  copy(2, 1);
  std::array<TileId, 3> lost{};
  ASSERT_EQ(directory_.space_lost(2, lost), 1u);
  EXPECT_EQ(lost[0], tile_);
  EXPECT_EQ(states(), (std::array{invalid, invalid, invalid, invalid}));
  EXPECT_TRUE(directory_.home_lost(tile_));
  EXPECT_TRUE(directory_.home_lost(blank));
  EXPECT_FALSE(directory_.written(directory_.add(true, 2))) << "nothing is there any more";
}

}  // namespace
}  // namespace quadriga
