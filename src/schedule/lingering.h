// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/lingering.h: tiles of the program's memory of which ended tasks left replicas on
// devices: what the program reads and writes next must not miss them. Pure.
//
// Invariants
//   1. A tile is in the list once, from the end of a task that left a replica of it away from home
//      until none of its content is elsewhere, a task is to write it, or it is removed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/task.h"

namespace quadriga {

class Lingering {
 public:
  void add(TileId tile) {
    if (tile >= places_.size()) places_.resize(tile + 1);
    if (places_[tile] != 0) return;
    tiles_.push_back(tile);
    places_[tile] = static_cast<std::uint32_t>(tiles_.size());
  }
  /// Nothing if it isn't there.
  void remove(TileId tile) {
    if (tile >= places_.size() || places_[tile] == 0) return;
    const std::uint32_t place = places_[tile];
    const TileId last = tiles_.back();
    tiles_[place - 1] = last;
    places_[last] = place;
    places_[tile] = 0;
    tiles_.pop_back();
  }
  std::span<const TileId> tiles() const noexcept { return tiles_; }

 private:
  std::vector<TileId> tiles_;
  std::vector<std::uint32_t> places_;  ///< By tile: where it is in `tiles_`, from 1; 0: it isn't.
};

}  // namespace quadriga
