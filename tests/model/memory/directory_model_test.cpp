// SPDX-License-Identifier: BSD-3-Clause
// tests/model/memory/directory_model_test.cpp: random events, and bugs that they must find.
#include "model/memory/directory_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sanitized.h"

namespace quadriga {
namespace {

constexpr int events = 20000;

/// Runs a model for some thousand events; empty, or what was wrong at which event.
std::string run(DirectoryModel& model) {
  for (int event = 0; event < events; ++event)
    if (const std::string wrong = model.step(); !wrong.empty())
      return fmt::format("event {}: {}", event, wrong);
  return model.drain();
}

int spaces_of(int seed) { return 1 + seed % 5; }

/// The parameter is the seed: a failure is replayed by its name.
class DirectoryModelTest : public ::testing::TestWithParam<int> {};

TEST_P(DirectoryModelTest, AgreesWithTheContents) {
  const int seed = GetParam(), spaces = spaces_of(seed);
  DirectoryModel model(static_cast<std::uint64_t>(seed), spaces, {});
  EXPECT_EQ(run(model), "") << "seed " << seed << ", " << spaces << " spaces";
  if (spaces < 4) return;
  for (const char* event :
       {"add", "add at a device", "remove", "copy", "forward", "write back", "copy behind a copy",
        "read", "write", "drop", "drop refused", "drop of one in use refused", "space lost",
        "content lost", "ended", "failed", "refused"})
    EXPECT_GT(model.seen().count(event), 0u) << event << " never happened";
}

INSTANTIATE_TEST_SUITE_P(Seed, DirectoryModelTest, ::testing::Range(0, 10));

TEST(DirectoryModelOfHomes, AreLostWithTheirSpaces) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < (is_sanitized ? 3 : 10); ++seed) {
    DirectoryModel model(seed, 5, {});
    EXPECT_EQ(run(model), "") << "seed " << seed;
    lost += static_cast<int>(model.seen().count("home lost"));
  }
  EXPECT_GT(lost, is_sanitized ? 0 : 3);
}

TEST(PlantedBug, AWriteThatForgetsAReplicaIsFound) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    DirectoryModel::Teller forgetful;
    forgetful.write_issued = [](Directory& directory, TileId tile, SpaceId space) {
      SpaceId forgotten = 0;
      while (forgotten < directory.spaces() &&
             (forgotten == space || !directory.arrived(tile, forgotten)))
        ++forgotten;
      directory.write_issued(tile, space);
      if (forgotten == directory.spaces()) return;
      // To the directory this is as if the old content were the newest.
      directory.copy_issued(tile, space, forgotten);
      directory.copy_ended(tile, space, forgotten, true);
    };
    DirectoryModel model(seed, 4, forgetful);
    EXPECT_NE(run(model), "") << "seed " << seed;
  }
}

TEST(PlantedBug, AFailureThatIsOverheardIsFound) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    DirectoryModel::Teller deaf;
    deaf.copy_ended = [](Directory& directory, TileId tile, SpaceId from, SpaceId to, bool) {
      directory.copy_ended(tile, from, to, true);
    };
    DirectoryModel model(seed, 4, deaf);
    EXPECT_NE(run(model), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace quadriga
