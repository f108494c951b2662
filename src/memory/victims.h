// SPDX-License-Identifier: BSD-3-Clause
// src/memory/victims.h: which tiles leave a space so that a block fits: those that may go now and
// are needed least. Changes nothing but what is remembered to find them.
//
// Mostly one tile is enough, as blocks are alike: it is found without a look at the others
// (residents.h). Several that must lie side by side, or whose sum counts, are chosen from all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/eviction.h"
#include "memory/replicas.h"
#include "memory/residency.h"
#include "memory/tile_forecast.h"
#include "memory/write_backs.h"

namespace quadriga {

class Victims {
 public:
  /// `rule`: null for its own FarthestUse.
  Victims(const EvictionRule* rule, TileForecast& forecast, const Replicas& replicas,
          Residency& residency, const WriteBacks& write_backs)
      : rule_(rule ? *rule : farthest_use_),
        forecast_(forecast),
        replicas_(replicas),
        residency_(residency),
        write_backs_(write_backs) {}
  Victims(const Victims&) = delete;
  Victims& operator=(const Victims&) = delete;

  /// Enough for a block of these bytes; none if there aren't. Without `buffers`, those that need no
  /// buffer of the host's on their way.
  std::vector<TileId> choose(std::size_t bytes, SpaceId space, bool buffers);
  /// The same of those that are clean.
  std::vector<TileId> choose_clean(std::size_t bytes, SpaceId space);
  /// Tiles of a space, those that are needed least first.
  std::vector<Candidate> ranked(std::span<const TileId> tiles, SpaceId space);
  /// Throws internal if somebody could leave who wouldn't be found.
  void validate();

 private:
  enum class Who : std::uint8_t { all, without_buffer, clean };
  VictimBound bound(TileId tile, SpaceId space) const {
    return rule_.bound(forecast_.next_use(tile, space), replicas_.at(tile, space).last_use);
  }
  bool may_leave(TileId tile, SpaceId space, Who who) const;
  std::vector<TileId> choose(std::size_t bytes, SpaceId space, Who who);
  Candidate best_of(std::size_t bytes, SpaceId space, Who who);
  std::vector<TileId> choose_several(std::size_t bytes, SpaceId space, Who who);
  Candidate candidate(TileId tile, SpaceId space) const;

  FarthestUse farthest_use_;
  const EvictionRule& rule_;  ///< What was given, or farthest_use_.
  TileForecast& forecast_;
  const Replicas& replicas_;
  Residency& residency_;
  const WriteBacks& write_backs_;
  std::vector<Candidate> candidates_;
};

}  // namespace quadriga
