// SPDX-License-Identifier: BSD-3-Clause
// src/memory/final_writes.h: brings home what no task writes any more, by the quickest way and
// while that has room.
#pragma once

#include <deque>

#include "memory/replicas.h"
#include "memory/residency.h"
#include "memory/tile_forecast.h"
#include "memory/transfers.h"
#include "memory/write_backs.h"

namespace quadriga {

class FinalWrites {
 public:
  FinalWrites(const TileForecast& forecast, const Replicas& replicas, Transfers& transfers,
              Residency& residency, WriteBacks& write_backs)
      : forecast_(forecast),
        replicas_(replicas),
        transfers_(transfers),
        residency_(residency),
        write_backs_(write_backs) {}

  /// Queues a copy home of content that won't change, by the quickest way, once that has room; a
  /// replica on its way to such a device is waited for. At once where the memory may be needed.
  void write(TileId tile);
  void copy_ended(const Transfer& transfer);

 private:
  bool is_due_home(TileId tile) const;
  void write_due();
  bool goes(TileId tile);
  bool relay(TileId tile, SpaceId owner);

  const TileForecast& forecast_;
  const Replicas& replicas_;
  Transfers& transfers_;
  Residency& residency_;
  WriteBacks& write_backs_;
  std::deque<TileId> finals_;  ///< That write() put off.
};

}  // namespace quadriga
