// SPDX-License-Identifier: BSD-3-Clause
// src/memory/staging.h: brings operands to where a task runs, all at once or none, and fetches
// tiles ahead of their need.
//
// Invariants
//   1. Operands that were staged are pinned, and valid where they are read; who couldn't stage all
//      of them has pinned none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/evictor.h"
#include "memory/outcome.h"
#include "memory/replicas.h"
#include "memory/residency.h"
#include "memory/tile_forecast.h"
#include "memory/transfers.h"

namespace quadriga {

class Staging {
 public:
  Staging(const TileForecast& forecast, Replicas& replicas, Transfers& transfers,
          Residency& residency, Evictor& evictor)
      : forecast_(forecast),
        replicas_(replicas),
        transfers_(transfers),
        residency_(residency),
        evictor_(evictor) {}

  /// Reserves room for all needs at once, pins them in the space and queues the copies that are
  /// missing; or does nothing of it. Release by Residency::unpin().
  Outcome stage(std::span<const Need> needs, SpaceId space);
  /// Fetches one tile ahead of its need at `position` of the plan, in the place of `victims`, none
  /// of which is needed before. Not pinned.
  Outcome prefetch(TileId tile, SpaceId space, std::uint64_t position,
                   std::span<const TileId> victims);

 private:
  bool must_be_fetched(const Need& need, SpaceId space) const;
  Awaits find_source(TileId tile, SpaceId to, SpaceId& from, bool ahead);
  Awaits reserve(std::span<const Need> needs, SpaceId space);
  Awaits fetch(std::span<const Need> needs, SpaceId space);
  void bring(TileId tile, SpaceId space, Reason reason);
  void add_below(SpaceId space);
  SpaceId wanted_beside(TileId tile, SpaceId space) const;
  bool comes_along(TileId tile, SpaceId space) const;

  const TileForecast& forecast_;
  Replicas& replicas_;
  Transfers& transfers_;
  Residency& residency_;
  Evictor& evictor_;
  std::vector<TileId> column_;  ///< Scratch: what one copy brings.
};

}  // namespace quadriga
