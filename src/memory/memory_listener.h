// SPDX-License-Identifier: BSD-3-Clause
// src/memory/memory_listener.h: what the memory tells its user, the scheduler.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/backend.h"
#include "memory/transfers.h"

namespace quadriga {

class MemoryListener {
 public:
  virtual ~MemoryListener() = default;
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
