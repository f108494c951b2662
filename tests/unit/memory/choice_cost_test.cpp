// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/choice_cost_test.cpp: how many tiles are asked for their next use when one has
// to leave a full memory, or may be written back ahead, however many there are.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "memory/memory.h"

namespace quadriga {
namespace {

constexpr std::size_t tile_bytes = 4096;

/// A device that works on twice as many tiles as it holds, one after the other and again.
class Round final : public TileForecast, public MemoryListener {
 public:
  explicit Round(std::size_t held)
      : arena_(held * tile_bytes), next_uses_(2 * held), home_(tile_bytes) {
    for (std::size_t i = 0; i < next_uses_.size(); ++i) {
      const TileId tile = memory_.replicas().add(
          {.home = home_.data(), .width_bytes = tile_bytes, .columns = 1, .pitch = tile_bytes});
      next_uses_[tile] = i;
    }
  }

  std::uint64_t next_use(TileId tile, SpaceId) const override {
    ++asked_;
    return next_uses_[tile];
  }
  bool take_later_uses(std::vector<LaterUse>& tiles) override {
    for (const TileId tile : later_) tiles.push_back({tile, 1});
    later_.clear();
    return true;
  }
  void copy_ended(StreamId, Reason, TileId, SpaceId, SpaceId, std::size_t,
                  const Completion&) override {}
  void evicted(TileId, SpaceId) override { ++evicted_; }
  void probed(SpaceId, const Completion&) override {}

  /// Questions a task, once the memory is full.
  double questions(Access access, std::uint64_t last_use) {
    for (std::size_t i = 0; i < next_uses_.size(); ++i) run(access, last_use);
    const std::size_t before = asked_;
    evicted_ = 0;
    for (std::size_t i = 0; i < next_uses_.size(); ++i) run(access, last_use);
    EXPECT_GE(evicted_, next_uses_.size() / 4);
    return static_cast<double>(asked_ - before) / static_cast<double>(next_uses_.size());
  }

 private:
  /// The next task: it ends at once, and its tile is used again a round later or never.
  void run(Access access, std::uint64_t last_use) {
    const auto tile = static_cast<TileId>(position_ % next_uses_.size());
    const Need need{tile, access};
    while (!is_done(memory_.staging().stage({&need, 1}, 1))) end_copies();
    end_copies();
    memory_.used(tile, 1, access, {6, ++kernels_});
    if (writes(access)) memory_.transfers().confirm(tile);
    memory_.residency().unpin(tile, 1);
    ++position_;
    const std::uint64_t again = position_ + next_uses_.size() - 1;
    next_uses_[tile] = again <= last_use ? again : no_next_use;
    later_.push_back(tile);
    memory_.write_backs().clean_ahead(1);
    end_copies();
  }
  void end_copies() {
    std::vector<Event> copies;
    for (const Instruction& each : instructions_.pending())
      if (each.ticket > 0) copies.push_back({each.stream, each.ticket});
    instructions_.clear();
    for (const Event event : copies) {
      Completion completion;
      completion.event = event;
      memory_.completed(completion);
    }
  }
  std::vector<SpaceResources> resources() {
    return {{},
            {.device = 0,
             .base = arena_.data(),
             .bytes = arena_.size(),
             .in = 0,
             .out = 1,
             .peers = {0, 0}}};
  }

  std::vector<std::byte> arena_;
  std::vector<std::uint64_t> next_uses_;
  std::vector<TileId> later_;
  mutable std::size_t asked_ = 0;
  std::size_t evicted_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t kernels_ = 0;
  std::vector<std::byte> home_;
  Machine machine_ = Machine::parse("emulated:1,memory=1GiB,h2d=1GB/s,d2h=1GB/s");
  Instructions instructions_;
  Memory memory_{instructions_, machine_, resources(), *this, *this, {}};
};

TEST(ChoiceCost, OfAVictimDoesNotGrowWithTheResidents) {
  const double few = Round(16).questions(Access::read, UINT64_MAX);
  const double many = Round(1024).questions(Access::read, UINT64_MAX);
  EXPECT_LE(many, few + 1);
  EXPECT_LE(many, 16) << "a look at all asks 1024";
}

TEST(ChoiceCost, OfWhatIsWrittenBackAheadDoesNotGrowWithTheResidents) {
  const double few = Round(16).questions(Access::update, 0);
  const double many = Round(1024).questions(Access::update, 0);
  EXPECT_LE(many, few + 1);
  EXPECT_LE(many, 16) << "a look at all asks 1024";
}

TEST(ChoiceCost, OfDirtyVictimsDoesNotGrowWithTheResidents) {
  const double few = Round(16).questions(Access::update, UINT64_MAX);
  const double many = Round(1024).questions(Access::update, UINT64_MAX);
  EXPECT_LE(many, few + 1);
  EXPECT_LE(many, 16) << "a look at all asks 1024";
}

}  // namespace
}  // namespace quadriga
