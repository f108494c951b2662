// SPDX-License-Identifier: BSD-3-Clause
// src/memory/write_backs.h: how dirty content leaves a space: home, by way of a buffer on the host,
// or from such a buffer to a file. Makes no room on the way.
#pragma once

#include "memory/replicas.h"
#include "memory/residency.h"
#include "memory/tile_forecast.h"
#include "memory/transfers.h"

namespace quadriga {

class WriteBacks {
 public:
  WriteBacks(TileForecast& forecast, Replicas& replicas, Transfers& transfers, Residency& residency)
      : forecast_(forecast), replicas_(replicas), transfers_(transfers), residency_(residency) {}

  /// Queues a copy home if home is stale; its producer has ended. Between devices that no route
  /// joins it goes by way of a buffer on the host. Nothing is queued while a probe decides whether
  /// one of them is gone. False if there is no buffer.
  bool write_back(TileId tile, Reason reason);
  /// Writes back what is dirty, unpinned and not needed again, while room is short.
  void clean_ahead(SpaceId space);

  /// It goes home to the host, or by way of it.
  bool needs_host(TileId tile, SpaceId owner) const;
  /// Whether what is dirty has a way out: from a device home, from the host's buffers to a home on
  /// a device or to a file, from a file nowhere.
  bool can_be_sent(TileId tile, SpaceId space) const;
  /// By the links that it takes: home, or to the host and from there.
  double seconds(TileId tile, SpaceId space) const;

 private:
  bool can_go_to_file(TileId tile) const;

  TileForecast& forecast_;
  Replicas& replicas_;
  Transfers& transfers_;
  Residency& residency_;
};

}  // namespace quadriga
