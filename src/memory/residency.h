// SPDX-License-Identifier: BSD-3-Clause
// src/memory/residency.h: which tiles have blocks in which space: room is made by eviction, and
// what is dirty is written back first.
//
// Invariants
//   1. A block is released only when its replica is idle, that is neither pinned nor in flight:
//      nothing queued touches it any more, so its next user has nothing to wait for.
//   2. What is dirty is never released: it is written back, and released once that has ended.
//   3. A buffer of the host is taken from a tile only for a copy that is queued at once, or for a
//      task that is issued at once; who leaves a device to a buffer that is scarce has left the
//      device when the copy ends. So two tiles never undo for ever what the other did.
//   4. What has no home and leaves the host's buffers for a file is written there first; its buffer
//      goes once that has ended (invariant 2). It comes back by the host's buffers.
//
// Nobody waits here: who finds no room comes again when something has ended.
#pragma once

#include <quadriga/machine.h>

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "memory/eviction.h"
#include "memory/memory_listener.h"
#include "memory/outcome.h"
#include "memory/pool.h"
#include "memory/replicas.h"
#include "memory/spill.h"
#include "memory/tile_forecast.h"
#include "memory/transfers.h"

namespace quadriga {

struct MemoryOptions {
  std::size_t spill_bytes = SIZE_MAX;  ///< Most host memory for tiles without a home.
  std::string spill_file;              ///< Holds them instead, if not empty.
  const EvictionRule* rule = nullptr;  ///< Outlives the memory; null: its own FarthestUse.
};

class Residency {
 public:
  /// `spaces`: what each space has, by its number; `nodes`: the host's.
  Residency(std::span<const SpaceResources> spaces, std::span<const Node> nodes,
            const MemoryOptions& options, const TileForecast& forecast, MemoryListener& listener,
            Replicas& replicas, Transfers& transfers);

  // Room.
  /// A tile has memory in a space from now on: at home, or a block. False if there is none to
  /// spare.
  bool allocate(TileId tile, SpaceId space);
  /// The same for all of these at once, or for none; room is made for them.
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
  /// Nothing is pinned in a space or in flight to it or from it.
  bool quiet(SpaceId space) const noexcept;

  // Write-backs.
  /// Queues a copy home if home is stale; its producer has ended. Between devices that no route
  /// joins it goes by way of a buffer on the host. Nothing is queued while a probe decides whether
  /// one of them is gone. False if there is no buffer.
  bool write_back(TileId tile, Reason reason);
  /// The same, and makes room on the host for it; false as long as that takes.
  bool send_home(TileId tile, Reason reason);
  /// The same of content that won't change, by the quickest way, once that has room; a replica on
  /// its way to such a device is waited for. At once where the memory may be needed.
  void write_final(TileId tile);
  /// Writes back what is dirty, unpinned and not needed again, while room is short.
  void clean_ahead(SpaceId space);

  // What becomes of replicas.
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

  const Pool& pool(SpaceId space) const noexcept { return pools_[space]; }
  const Spill& spill() const noexcept { return spill_; }
  /// Nothing has to leave soon: what is dirty may stay so.
  bool has_plenty(SpaceId space) const noexcept;
  /// A task that is about to run there reads what the tile holds.
  bool is_wanted_within(double seconds, TileId tile, SpaceId space) const {
    return forecast_.is_wanted_within(seconds, tile, space);
  }
  /// Another device whose tasks read what the tile holds, and which has yet to get it; no_space if
  /// none is known.
  SpaceId wanted_beside(TileId tile, SpaceId space) const {
    std::uint64_t rest = forecast_.readers(tile) >> 1;  // the host is no device
    for (SpaceId other = 1; rest != 0; ++other, rest >>= 1)
      if ((rest & 1) && other != space && !replicas_.directory().valid(tile, other)) return other;
    return no_space;
  }
  void validate() const;

 private:
  void release(TileId tile, SpaceId space);
  bool release_if_unused(TileId tile, SpaceId space);
  bool release_if_held(TileId tile, SpaceId space);
  void release_if_passed(TileId tile);
  bool is_due_home(TileId tile) const;
  void write_finals();
  bool relay_final(TileId tile, SpaceId owner);
  bool can_go_to_file(TileId tile) const;
  bool write_to_file(TileId tile);
  bool can_be_sent(TileId tile, SpaceId space) const;
  std::vector<TileId> choose_victims(std::size_t bytes, SpaceId space, bool buffers);
  Candidate candidate(TileId tile, SpaceId space) const;
  int node_near(TileId tile) const;
  double write_back_seconds(TileId tile, SpaceId space) const;
  std::size_t allocate_some(std::span<const Need> needs, SpaceId space);
  Awaits evict_all(std::span<const TileId> victims, SpaceId space);
  void drop(TileId tile, SpaceId space);
  bool send_away(TileId tile, SpaceId space);
  /// It goes home to the host, or by way of it.
  bool needs_host(TileId tile, SpaceId owner) const;
  bool buffers_are_scarce() const noexcept { return spill_.used() > spill_.limit() / 2; }

  const TileForecast& forecast_;
  MemoryListener& listener_;
  Replicas& replicas_;
  Transfers& transfers_;
  FarthestUse farthest_use_;
  const EvictionRule& rule_;  ///< What was given, or farthest_use_.
  Spill spill_;
  SpaceId file_ = no_space;  ///< The space of a file, if there is one.
  std::vector<Pool> pools_;  ///< By space.
  std::vector<int> near_;    ///< By space: the host's nearest node.
  std::vector<Candidate> candidates_;
  std::deque<TileId> finals_;  ///< That write_final() put off.
};

}  // namespace quadriga
