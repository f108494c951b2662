// SPDX-License-Identifier: BSD-3-Clause
// src/memory/tile_forecast.h: what the memory asks about tasks to come, to choose who leaves.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/directory.h"

namespace quadriga {

/// A tile whose next use in a space, or in all of them if it is no_space, has changed.
struct LaterUse {
  TileId tile = no_tile;
  SpaceId space = no_space;
};

/// Answers are of this moment.
class TileForecast {
 public:
  virtual ~TileForecast() = default;
  /// Position in the plan of the tile's next use on a device's space; no_next_use if none is known.
  virtual std::uint64_t next_use(TileId tile, SpaceId space) const = 0;
  /// Appends the tiles whose next use may be later than it was when this was called last. False if
  /// that isn't known: it may be all of them.
  virtual bool take_later_uses(std::vector<LaterUse>& /*tiles*/) { return false; }
  /// How many positions of its plan a device passes in a second, as predicted; 0: unknown.
  virtual double positions_per_second(SpaceId /*space*/) const { return 0; }
  /// No task that was submitted and has not ended writes the tile, nor will any: it goes home.
  virtual bool is_final(TileId /*tile*/) const { return false; }
  /// Only tasks where the space is use the tile; the first of them reads what it holds now, and is
  /// predicted to begin within these seconds.
  virtual bool is_wanted_within(double /*seconds*/, TileId /*tile*/, SpaceId /*space*/) const {
    return false;
  }
  /// The spaces where tasks that are placed read first what the tile holds now, a bit each.
  virtual std::uint64_t readers(TileId /*tile*/) const { return 0; }
};

}  // namespace quadriga
