// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/planned_uses.h: what the plan foretells of tiles: when they are used next, how soon
// that is, and whether a task still writes them.
//
// Pure. A space that several devices share is asked for the first of them; one
// that none has, such as a file's, has no uses.
#pragma once

#include "memory/tile_forecast.h"
#include "schedule/state.h"

namespace quadriga {

class PlannedUses final : public TileForecast {
 public:
  explicit PlannedUses(ScheduleState& state) : state_(state) {}

  std::uint64_t next_use(TileId tile, SpaceId space) const override;
  bool take_later_uses(std::vector<LaterUse>& tiles) override;
  double positions_per_second(SpaceId space) const override;
  bool is_final(TileId tile) const override;
  bool is_wanted_within(double seconds, TileId tile, SpaceId space) const override;
  std::uint64_t readers(TileId tile) const override;

 private:
  ScheduleState& state_;
};

}  // namespace quadriga
