// SPDX-License-Identifier: BSD-3-Clause
// src/memory/hand_over.h: has tiles leave the host's full buffers for devices with room.
//
// Invariants
//   1. Asked only where nothing is in flight, for a task that can't be issued otherwise. Whoever
//      asks bounds how often (Launcher::hand_over()), so that tiles don't change places for ever.
//   2. Nothing dirty leaves a device for it, nor any operand of the task the device that runs it.
//   3. What is handed over has left the host when the copy ends (Residency::copy_ended()), and
//      stays if that fails.
#pragma once

#include <cstddef>
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
  HandOver(const EvictionRule* rule, TileForecast& forecast, Replicas& replicas,
           Transfers& transfers, Residency& residency, const WriteBacks& write_backs)
      : replicas_(replicas),
        transfers_(transfers),
        residency_(residency),
        victims_(rule, forecast, replicas, residency, write_backs) {}

  /// Begins to make room on the host for staging these in a space: what a device needs itself goes
  /// there, others to the device with the most room. False if nothing can leave.
  bool make_room(std::span<const Need> needs, SpaceId space);

 private:
  std::size_t host_bytes(TileId tile) const;
  std::size_t lacking(std::span<const Need> needs, SpaceId space) const;
  bool passes_host(const Need& need, SpaceId space) const;
  bool may_leave(TileId tile) const;
  bool send(TileId tile, SpaceId to);
  bool send_beside(TileId tile, SpaceId space);

  Replicas& replicas_;
  Transfers& transfers_;
  Residency& residency_;
  Victims victims_;
};

}  // namespace quadriga
