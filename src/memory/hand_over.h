// SPDX-License-Identifier: BSD-3-Clause
// src/memory/hand_over.h: has tiles leave the host's full buffers for devices with room.
//
// Invariants
//   1. Only where nothing is in flight, for a task that can't be issued otherwise; what is handed
//      over has left the host when the copy ends (Residency::copy_ended()).
//   2. Nothing dirty leaves a device for it.
#pragma once

#include <span>

#include "memory/outcome.h"
#include "memory/replicas.h"
#include "memory/residency.h"
#include "memory/transfers.h"
#include "memory/victims.h"

namespace quadriga {

class HandOver {
 public:
  /// `rule`: who leaves first; null for FarthestUse.
  HandOver(const EvictionRule* rule, const TileForecast& forecast, Replicas& replicas,
           Transfers& transfers, Residency& residency, const WriteBacks& write_backs)
      : replicas_(replicas),
        transfers_(transfers),
        residency_(residency),
        victims_(rule, forecast, replicas, residency, write_backs) {}

  /// Makes room on the host for staging these in a space: what a device needs itself goes there,
  /// others to the device with the most room. False if nothing can leave.
  bool make_room(std::span<const Need> needs, SpaceId space);

 private:
  bool may_leave(TileId tile) const;
  bool send(TileId tile, SpaceId to);
  bool send_beside(TileId tile, SpaceId space);

  Replicas& replicas_;
  Transfers& transfers_;
  Residency& residency_;
  Victims victims_;
};

}  // namespace quadriga
