// SPDX-License-Identifier: BSD-3-Clause
// src/memory/victims.h: which tiles leave a space so that a block fits: those that may go now and
// are needed least. Changes nothing.
#pragma once

#include <cstddef>
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
  Victims(const EvictionRule* rule, const TileForecast& forecast, const Replicas& replicas,
          const Residency& residency, const WriteBacks& write_backs)
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

 private:
  Candidate candidate(TileId tile, SpaceId space) const;
  std::vector<TileId> choose_of_candidates(std::size_t bytes, SpaceId space);

  FarthestUse farthest_use_;
  const EvictionRule& rule_;  ///< What was given, or farthest_use_.
  const TileForecast& forecast_;
  const Replicas& replicas_;
  const Residency& residency_;
  const WriteBacks& write_backs_;
  std::vector<Candidate> candidates_;
};

}  // namespace quadriga
