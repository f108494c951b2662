// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/residents_test.cpp: who leaves best, and who is marked, beside looks at all.
#include "memory/residents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/random.h"

namespace quadriga {
namespace {

TEST(PlaceSet, IsASet) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Random random(seed);
    PlaceSet found;
    std::set<std::size_t> expected;
    const std::uint64_t most = seed == 4 ? 300'000 : seed * 90;
    for (int step = 0; step < 5'000; ++step) {
      const std::size_t place = random.below(most);
      if (random.chance(0.5)) {
        found.insert(place);
        expected.insert(place);
      } else {
        const auto near = expected.lower_bound(place);
        const std::size_t gone = near == expected.end() ? place : *near;
        found.erase(gone);
        expected.erase(gone);
      }
      const std::size_t from = random.below(most + 100);
      const auto next = expected.lower_bound(from);
      ASSERT_EQ(found.next(from), next == expected.end() ? PlaceSet::none : *next) << from;
      ASSERT_EQ(found.contains(from), expected.contains(from)) << from;
    }
  }
}

/// Residents whose bounds rise, which is told, and fall, which isn't.
class RandomResidents {
 public:
  explicit RandomResidents(std::uint64_t seed) : random_(seed) {}

  void act() {
    const auto tile = static_cast<TileId>(random_.below(tiles));
    const auto known = bounds_.find(tile);
    if (known == bounds_.end()) {
      residents_.add(tile);
      bounds_[tile] = some_bound();
      list_.push_back(tile);
    } else if (random_.chance(0.2)) {
      residents_.remove(tile);
      bounds_.erase(tile);
      marked_.erase(tile);
      *std::ranges::find(list_, tile) = list_.back();
      list_.pop_back();
    } else if (random_.chance(0.2)) {
      residents_.mark(tile);
      marked_.insert(tile);
    } else {
      const VictimBound bound = some_bound();
      if (bound > std::exchange(known->second, bound) || random_.chance(0.1))
        residents_.may_leave(tile);
    }
  }

  /// Some can't leave now, others have a rank below their bound.
  void search() {
    std::map<TileId, VictimBound> ranks;
    for (const auto& [tile, bound] : bounds_)
      if (random_.chance(0.7))
        ranks[tile] = random_.chance(0.5) ? bound : VictimBound{bound.distance / 2, bound.age};
    VictimBound best, expected;
    for (const auto& [tile, rank] : ranks) expected = std::max(expected, rank);
    std::set<TileId> looked;
    residents_.search([&](TileId tile) { return bounds_.at(tile); },
                      [&](TileId tile) {
                        EXPECT_TRUE(looked.insert(tile).second) << "tile " << tile;
                        const auto rank = ranks.find(tile);
                        if (rank != ranks.end()) best = std::max(best, rank->second);
                        return best;
                      });
    EXPECT_EQ(best, expected);
    // Among equals the caller chooses: it has seen all of them.
    for (const auto& [tile, rank] : ranks) {
      if (rank == best) {
        EXPECT_TRUE(looked.contains(tile)) << "tile " << tile;
      }
    }
    residents_.validate();
    for (const auto& [tile, bound] : bounds_) EXPECT_TRUE(residents_.covers(tile, bound));
  }

  void look_at_marked() {
    std::vector<TileId> expected, found;
    std::ranges::copy_if(list_, std::back_inserter(expected),
                         [this](TileId tile) { return marked_.contains(tile); });
    const std::size_t last = random_.below(expected.size() + 1);
    residents_.for_marked([&](TileId tile) {
      found.push_back(tile);
      if (found.size() == last) return Residents::Answer::take;
      if (random_.chance(0.5)) return Residents::Answer::keep;
      marked_.erase(tile);
      return Residents::Answer::drop;
    });
    if (last > 0) expected.resize(last);
    EXPECT_EQ(found, expected);
  }

 private:
  static constexpr std::uint64_t tiles = 150;
  VictimBound some_bound() { return {random_.below(20), random_.below(3)}; }

  Random random_;
  Residents residents_;
  std::map<TileId, VictimBound> bounds_;
  std::vector<TileId> list_;
  std::set<TileId> marked_;
};

TEST(Residents, AreFoundAsByALookAtAll) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RandomResidents residents(seed);
    for (int step = 0; step < 1'000 && !::testing::Test::HasFailure(); ++step) {
      residents.act();
      if (step % 3 == 0) residents.search();
      if (step % 5 == 0) residents.look_at_marked();
    }
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
}

/// As many residents with uses in turn, of which the one that is used next gets the farthest use.
std::size_t looks_a_search(TileId count) {
  Residents residents;
  std::vector<std::uint64_t> next_uses(count);
  for (TileId tile = 0; tile < count; ++tile) {
    next_uses[tile] = tile;
    residents.add(tile);
  }
  constexpr TileId searches = 1'000;
  std::size_t looks = 0;
  for (TileId search = 0; search <= searches; ++search) {
    std::size_t asked = 0;
    VictimBound best;
    const auto bound = [&](TileId tile) {
      ++asked;
      return VictimBound{next_uses[tile], 0};
    };
    residents.search(bound, [&](TileId tile) {
      return best = std::max(best, VictimBound{next_uses[tile], 0});
    });
    EXPECT_EQ(best.distance, count - 1 + search);
    if (search > 0) looks += asked;  // The first one asks all.
    next_uses[search % count] = count + search;
    residents.may_leave(search % count);
  }
  return looks / searches;
}

TEST(Residents, ASearchDoesNotGrowWithThem) {
  const std::size_t few = looks_a_search(100), many = looks_a_search(10'000);
  EXPECT_LE(many, few);
  EXPECT_LE(many, 4u);
}

}  // namespace
}  // namespace quadriga
