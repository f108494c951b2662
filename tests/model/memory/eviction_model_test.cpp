// SPDX-License-Identifier: BSD-3-Clause
// tests/model/memory/eviction_model_test.cpp: the choice of victims against exhaustive search.
#include "memory/eviction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "base/random.h"
#include "memory/arena.h"

namespace quadriga {
namespace {

constexpr std::size_t tile_bytes = 256;

/// Tiles in the order in which one device uses them.
using Accesses = std::vector<TileId>;

/// The least number of misses that any choice of victims leads to, from access `position` on.
int fewest_misses(const Accesses& accesses, std::size_t slots, std::size_t position, unsigned held,
                  std::map<std::pair<std::size_t, unsigned>, int>& known) {
  if (position == accesses.size()) return 0;
  const unsigned wanted = 1u << accesses[position];
  if (held & wanted) return fewest_misses(accesses, slots, position + 1, held, known);
  const auto [entry, fresh] = known.try_emplace({position, held}, INT32_MAX);
  if (!fresh) return entry->second;
  int best = INT32_MAX;
  if (std::popcount(held) < static_cast<int>(slots))
    best = fewest_misses(accesses, slots, position + 1, held | wanted, known);
  else
    for (unsigned rest = held; rest != 0; rest &= rest - 1)
      best = std::min(best, fewest_misses(accesses, slots, position + 1,
                                          (held & ~(rest & -rest)) | wanted, known));
  return known[{position, held}] = best + 1;
}

/// The misses of a device of some slots that chooses its victims by a rule.
int misses(const Accesses& accesses, std::size_t slots, const EvictionRule& rule) {
  Arena arena(slots * tile_bytes);
  std::vector<Candidate> held;
  int count = 0;
  for (std::size_t position = 0; position < accesses.size(); ++position) {
    const TileId tile = accesses[position];
    auto found = std::ranges::find(held, tile, &Candidate::tile);
    if (found == held.end()) {
      ++count;
      std::optional<std::size_t> offset = arena.allocate(tile_bytes);
      if (!offset) {
        TileId victim = no_tile;
        EXPECT_EQ(choose_victims(rule, arena, held, tile_bytes, {&victim, 1}), 1u);
        const auto leaving = std::ranges::find(held, victim, &Candidate::tile);
        arena.deallocate(leaving->offset);
        held.erase(leaving);
        offset = arena.allocate(tile_bytes);
      }
      held.push_back({.tile = tile, .offset = *offset, .bytes = tile_bytes});
      found = std::prev(held.end());
    }
    const auto later = std::find(accesses.begin() + static_cast<std::ptrdiff_t>(position) + 1,
                                 accesses.end(), tile);
    found->last_use = position;
    found->next_use = later == accesses.end()
                          ? no_next_use
                          : static_cast<std::uint64_t>(later - accesses.begin());
  }
  return count;
}

TEST(EvictionModel, FarthestUseHasTheFewestMisses) {
  int lru_misses = 0, farthest_misses = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const std::size_t slots = 1 + random.below(4);
    const std::uint64_t tiles = slots + 1 + random.below(4);
    Accesses accesses(20 + random.below(20));
    for (TileId& tile : accesses) tile = static_cast<TileId>(random.below(tiles));
    std::map<std::pair<std::size_t, unsigned>, int> known;
    const int farthest = misses(accesses, slots, FarthestUse(100));
    ASSERT_EQ(farthest, fewest_misses(accesses, slots, 0, 0, known)) << "seed " << seed;
    lru_misses += misses(accesses, slots, Lru());
    farthest_misses += farthest;
  }
  EXPECT_LT(farthest_misses, lru_misses) << "or else this test can't tell one rule from another";
}

/// Blocks of an arena in order of their offsets; those that aren't candidates stay or are free.
struct Layout {
  Arena arena{32 * tile_bytes};
  std::vector<Candidate> candidates;

  explicit Layout(Random& random) {
    std::vector<std::size_t> leaving;
    for (TileId tile = 0;; ++tile) {
      const std::size_t bytes = (1 + random.below(4)) * tile_bytes;
      const std::optional<std::size_t> offset = arena.allocate(bytes);
      if (!offset) break;
      const std::uint64_t dice = random.below(10);
      if (dice < 6)
        candidates.push_back(
            {.tile = tile, .offset = *offset, .bytes = bytes, .next_use = random.below(20)});
      else if (dice < 8)
        leaving.push_back(*offset);
    }
    for (const std::size_t offset : leaving) arena.deallocate(offset);
  }

  bool makes_room(unsigned victims, std::size_t bytes) const {
    Arena emptied = arena;
    for (std::size_t index = 0; index < candidates.size(); ++index)
      if (victims >> index & 1) emptied.deallocate(candidates[index].offset);
    return emptied.largest_free() >= bytes;
  }
  std::uint64_t soonest(unsigned victims) const {
    std::uint64_t soonest = no_next_use;
    for (std::size_t index = 0; index < candidates.size(); ++index)
      if (victims >> index & 1) soonest = std::min(soonest, candidates[index].next_use);
    return soonest;
  }
};

TEST(EvictionModel, NoOtherSetOfVictimsMakesRoomAndIsNeededLater) {
  int several = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    Layout layout(random);
    const std::size_t bytes = (1 + random.below(8)) * tile_bytes;
    if (layout.candidates.empty() || layout.arena.largest_free() >= bytes) continue;
    std::uint64_t best = 0;
    bool possible = false;
    const std::size_t count = std::min<std::size_t>(layout.candidates.size(), 12);
    layout.candidates.resize(count);
    for (unsigned victims = 1; victims < 1u << count; ++victims) {
      if (possible && layout.soonest(victims) <= best) continue;
      if (!layout.makes_room(victims, bytes)) continue;
      possible = true;
      best = layout.soonest(victims);
    }
    std::vector<TileId> out(count);
    std::vector<Candidate> shuffled = layout.candidates;
    std::ranges::shuffle(shuffled, random);
    out.resize(choose_victims(FarthestUse(), layout.arena, shuffled, bytes, out));
    ASSERT_EQ(!out.empty(), possible) << "seed " << seed;
    if (!possible) continue;
    unsigned victims = 0;
    for (std::size_t index = 0; index < count; ++index)
      if (std::ranges::count(out, layout.candidates[index].tile)) victims |= 1u << index;
    EXPECT_TRUE(layout.makes_room(victims, bytes)) << "seed " << seed;
    EXPECT_EQ(layout.soonest(victims), best) << "seed " << seed;
    several += out.size() > 1;
  }
  EXPECT_GT(several, 20) << "fragmentation was hardly tested";
}

}  // namespace
}  // namespace quadriga
