// SPDX-License-Identifier: BSD-3-Clause
// src/memory/memory_listener.h: what the memory asks and tells its user, the scheduler.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/backend.h"
#include "memory/transfers.h"

namespace quadriga {

class MemoryListener {
 public:
  virtual ~MemoryListener() = default;
  /// Position in the plan of the tile's next use on a device's space; no_next_use if none is known.
  virtual std::uint64_t next_use(TileId tile, SpaceId space) const = 0;
  /// How many positions of its plan a device passes in a second, as predicted; 0: unknown.
  virtual double positions_per_second(SpaceId /*space*/) const { return 0; }
  /// No task that was submitted and has not ended writes the tile, nor will any: it goes home.
  virtual bool is_final(TileId /*tile*/) const { return false; }
  /// Only tasks where the space is use the tile; the first of them reads what it holds now, and is
  /// predicted to begin within these seconds.
  virtual bool is_wanted_within(double /*seconds*/, TileId /*tile*/, SpaceId /*space*/) const {
    return false;
  }
  virtual void copy_ended(StreamId stream, Reason reason, TileId tile, SpaceId from, SpaceId to,
                          std::size_t bytes, const Completion& completion) = 0;
  virtual void evicted(TileId tile, SpaceId space) = 0;
  /// A tile's block in a device's arena is released, for whatever reason.
  virtual void departed(TileId /*tile*/, SpaceId /*space*/) {}
  /// How an empty copy from the space ended, that probe() had asked for.
  virtual void probed(SpaceId space, const Completion& completion) = 0;
  /// Nothing queued touches a device's block any more.
  virtual void freed(SpaceId /*space*/, std::byte* /*block*/, std::size_t /*bytes*/) {}
};

}  // namespace quadriga
