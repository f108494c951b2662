// SPDX-License-Identifier: BSD-3-Clause
// src/memory/residency.h: which tiles have blocks in which space, and when a block is released.
//
// Invariants
//   1. A block is released only when its replica is idle, that is neither pinned nor in flight:
//      nothing queued touches it any more, so its next user has nothing to wait for.
//   2. What is dirty is never released: it is written back, and released once that has ended.
//   3. A copy to a file that failed found its disk full, or the disk is broken: the file takes no
//      more than what lies in it.
//   4. Who left a device to a buffer that is scarce has left it when the copy ends (evictor.h, 1).
#pragma once

#include <quadriga/machine.h>

#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "memory/eviction.h"
#include "memory/memory_listener.h"
#include "memory/pool.h"
#include "memory/replicas.h"
#include "memory/spill.h"
#include "memory/tile_forecast.h"
#include "memory/transfers.h"

namespace quadriga {

struct MemoryOptions {
  std::size_t spill_bytes = SIZE_MAX;  ///< Most host memory for tiles without a home.
  const EvictionRule* rule = nullptr;  ///< Outlives the memory; null: its own FarthestUse.
  SpillAnswers answers = {};
};

class Residency {
 public:
  /// `spaces`: what each space has, by its number; `nodes`: the host's.
  Residency(std::span<const SpaceResources> spaces, std::span<const Node> nodes,
            const MemoryOptions& options, MemoryListener& listener, Replicas& replicas);

  /// A tile has memory in a space from now on: at home, or a block. False if there is none to
  /// spare.
  bool allocate(TileId tile, SpaceId space);
  /// Of a replica without content, once nothing queued uses it; true if it has no block now.
  bool release_if_unused(TileId tile, SpaceId space);
  /// Evicts a replica that is clean and idle.
  void drop(TileId tile, SpaceId space);
  /// Evicts the replicas on devices of a tile that is home.
  void evict(TileId tile);
  /// Nobody needs the content any more: its replicas go as soon as nothing queued uses them.
  void discard(TileId tile);
  /// Home alone holds the content from now on, which the host has written or may write.
  void give_home(TileId tile);
  /// The tile is forgotten; nothing of it is pinned or in flight.
  void remove(TileId tile);
  void unpin(TileId tile, SpaceId space);
  /// A kernel that overwrites a tile in a space was queued: the other replicas are old.
  void overwritten(TileId tile, SpaceId space);
  void copy_ended(const Transfer& transfer);
  void space_lost(SpaceId space) { pools_[space].clear(replicas_); }

  /// Passes on to the spaces what has changed since the last time: what is used later than before,
  /// and what has another owner.
  void catch_up(TileForecast& forecast);

  const Pool& pool(SpaceId space) const noexcept { return pools_[space]; }
  Residents& leaving(SpaceId space) noexcept { return pools_[space].leaving(); }
  const Spill& spill() const noexcept { return spill_; }
  /// Why tiles without a home found no room: what is full, and its size.
  std::string refusal() const;
  /// The space of a file; no_space if there is none.
  SpaceId file() const noexcept { return file_; }
  /// There is one, and it hasn't refused time after time where nothing could be cut off.
  bool file_takes() const noexcept { return file_ != no_space && refused_ < most_refusals; }
  /// Nothing has to leave soon: what is dirty may stay so.
  bool has_plenty(SpaceId space) const noexcept;
  /// Nothing is pinned in a space or in flight to it or from it.
  bool quiet(SpaceId space) const noexcept;
  void validate() const;

 private:
  /// More than a disk that is short for a moment refuses; each takes the time of a copy.
  static constexpr int most_refusals = 256;

  void release(TileId tile, SpaceId space);
  bool release_if_held(TileId tile, SpaceId space);
  void release_if_passed(TileId tile);
  void file_refused(const std::exception_ptr& error);
  int node_near(TileId tile) const;
  bool buffers_are_scarce() const noexcept { return spill_.used() > spill_.limit() / 2; }

  MemoryListener& listener_;
  Replicas& replicas_;
  Spill spill_;
  SpaceId file_ = no_space;
  std::string file_refusal_;     ///< What the disk said; empty while it gives.
  int refused_ = 0;              ///< Writes, one after the other, by which nothing was cut off.
  std::vector<Pool> pools_;      ///< By space.
  std::vector<int> near_;        ///< By space: the host's nearest node.
  std::vector<LaterUse> later_;  ///< Scratch.
};

}  // namespace quadriga
