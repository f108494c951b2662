// SPDX-License-Identifier: BSD-3-Clause
// src/memory/residents.h: the tiles that have a block in a space, and who of them may leave it or
// be written back next, found without a look at each. Pure.
//
// A heap by bounds answers for the choice of a victim: what becomes worse to leave (it was used
// again, or a nearer use came) is found when it is looked at, what may leave better than before is
// told (may_leave).
//
// Invariants
//   1. A resident is in the heap, or among those whose bound is to be asked, or both.
//   2. The bound in the heap of one that isn't to be asked is at least its rank at this moment.
//   3. A resident that is the owner of its content and has no next use is marked, once what was
//      told has been passed on (Residency::catch_up).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/eviction.h"
#include "memory/place_set.h"

namespace quadriga {

class Residents {
 public:
  std::span<const TileId> tiles() const noexcept { return tiles_; }
  void add(TileId tile);
  void remove(TileId tile);
  void clear();

  /// A resident may leave better than its bound says.
  void may_leave(TileId tile);
  void all_may_leave() {
    for (const TileId tile : tiles_) may_leave(tile);
  }

  /// Finds who leaves best. `bound(tile)` is what no rank of the tile at this moment exceeds;
  /// `look(tile)` takes note of the tile's rank and returns the best one so far. Only those are
  /// looked at that may be as good.
  /// Cost:  by those that are, and by what has changed since the last search.
  template <class Bound, class Look>
  void search(Bound&& bound, Look&& look) {
    ask(bound);
    VictimBound best;
    if (!heap_.empty()) stack_.assign(1, 0);
    while (!stack_.empty()) {
      const std::size_t at = stack_.back();
      stack_.pop_back();
      if (heap_[at].bound < best) continue;
      const TileId tile = heap_[at].tile;
      const VictimBound now = bound(tile);
      if (now < heap_[at].bound) fallen_.push_back({now, tile});
      if (now >= best) best = look(tile);
      for (std::size_t child = 2 * at + 2; child > 2 * at; --child)
        if (child < heap_.size()) stack_.push_back(static_cast<std::uint32_t>(child));
    }
    for (const Entry& entry : fallen_) set(entry.tile, entry.bound);
    fallen_.clear();
  }

  /// A resident may have to be written back.
  void mark(TileId tile) { marked_.insert(slots_[tile].place); }
  /// Calls look(tile) for those that are marked, in their order, until it answers `take`. Whom it
  /// answers `drop` isn't marked any more.
  enum class Answer : std::uint8_t { keep, drop, take };
  template <class Look>
  void for_marked(Look&& look) {
    for (std::size_t at = marked_.next(0); at != PlaceSet::none; at = marked_.next(at + 1)) {
      const Answer answer = look(tiles_[at]);
      if (answer == Answer::take) return;
      if (answer == Answer::drop) marked_.erase(at);
    }
  }

  bool is_marked(TileId tile) const noexcept { return marked_.contains(slots_[tile].place); }
  /// Whether this is no more than its bound in the heap, or it will be asked for another.
  bool covers(TileId tile, const VictimBound& bound) const noexcept {
    const Slot& slot = slots_[tile];
    return slot.to_ask || bound <= heap_[slot.node].bound;
  }
  /// Throws internal if an invariant is broken.
  void validate() const;

 private:
  static constexpr std::uint32_t nowhere = UINT32_MAX;
  /// Of a tile.
  struct Slot {
    std::uint32_t place = nowhere;  ///< Among the residents.
    std::uint32_t node = nowhere;   ///< In the heap.
    bool to_ask = false;            ///< It is in the list.
  };
  struct Entry {
    VictimBound bound;
    TileId tile = no_tile;
  };

  template <class Bound>
  void ask(Bound& bound) {
    for (const TileId tile : to_ask_) {
      slots_[tile].to_ask = false;
      if (slots_[tile].place != nowhere) set(tile, bound(tile));
    }
    to_ask_.clear();
  }
  void set(TileId tile, const VictimBound& bound);
  void take_out(std::size_t at);
  void sift(std::size_t at, const Entry& entry);
  void put(std::size_t at, const Entry& entry) {
    heap_[at] = entry;
    slots_[entry.tile].node = static_cast<std::uint32_t>(at);
  }

  std::vector<TileId> tiles_;
  std::vector<Slot> slots_;  ///< By tile.
  PlaceSet marked_;
  std::vector<Entry> heap_;     ///< The greatest bound first.
  std::vector<TileId> to_ask_;  ///< Some may have left since.
  std::vector<std::uint32_t> stack_;
  std::vector<Entry> fallen_;
};

}  // namespace quadriga
