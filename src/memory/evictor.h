// SPDX-License-Identifier: BSD-3-Clause
// src/memory/evictor.h: makes room in a space: what is clean is dropped, what is dirty is written
// back first.
//
// Invariants
//   1. A buffer of the host is taken from a tile only for a copy that is queued at once, or for a
//      task that is issued at once; who leaves a device to a buffer that is scarce has left the
//      device when the copy ends (Residency::copy_ended). So two tiles never undo for ever what
//      the other did.
//   2. What has no home and leaves the host's buffers for a file is written there first; its buffer
//      goes once that has ended. It comes back by the host's buffers.
//
// Nobody waits here: who finds no room comes again when something has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/outcome.h"
#include "memory/replicas.h"
#include "memory/residency.h"
#include "memory/tile_forecast.h"
#include "memory/transfers.h"
#include "memory/victims.h"
#include "memory/write_backs.h"

namespace quadriga {

class Evictor {
 public:
  /// `rule`: who leaves first; null for FarthestUse.
  Evictor(const EvictionRule* rule, TileForecast& forecast, Replicas& replicas,
          Transfers& transfers, Residency& residency, WriteBacks& write_backs)
      : forecast_(forecast),
        replicas_(replicas),
        transfers_(transfers),
        residency_(residency),
        write_backs_(write_backs),
        victims_(rule, forecast, replicas, residency, write_backs) {}

  /// As Residency::allocate() for all of these at once, or for none; room is made for them.
  bool allocate_all(std::span<const Need> needs, SpaceId space);
  /// Evicts what is needed least for a block of these bytes, or, where blocks lie anywhere, for
  /// several. Awaits nothing: they may fit.
  Awaits make_room(std::size_t bytes, SpaceId space);
  /// Evicts a replica that isn't needed before `position`; true if it is gone. A dirty one is
  /// written back first.
  bool evict_before(TileId tile, SpaceId space, std::uint64_t position);
  /// Empties a space that nothing queued uses, for a request that fragments of it can't hold:
  /// writes back what is dirty, releases the rest. Awaits nothing once it is empty.
  Awaits drain(SpaceId space);
  /// As WriteBacks::write_back(), and makes room on the host for it; false as long as that takes.
  bool send_home(TileId tile, Reason reason);
  void validate() { victims_.validate(); }

 private:
  std::size_t allocate_some(std::span<const Need> needs, SpaceId space);
  Awaits evict_all(std::span<const TileId> victims, SpaceId space);
  bool send_away(TileId tile, SpaceId space);
  bool write_to_file(TileId tile);

  TileForecast& forecast_;
  Replicas& replicas_;
  Transfers& transfers_;
  Residency& residency_;
  WriteBacks& write_backs_;
  Victims victims_;
};

}  // namespace quadriga
