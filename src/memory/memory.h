// SPDX-License-Identifier: BSD-3-Clause
// src/memory/memory.h: the parts that keep tiles in the spaces of a machine, put together.
//
//   Replicas   what each tile has in each space, over the directory of what is valid.
//   Transfers  copies between spaces, and the order of reads and writes.
//   Residency  blocks: who has one where, and when it is released.
//   WriteBacks, FinalWrites  dirty content that goes home, when asked to and when it is final.
//   Evictor    room, made by the eviction of what is needed least (Victims).
//   HandOver   tiles that leave the host's full buffers for devices.
//   Staging    operands of tasks, all at once, and what is fetched ahead.
//
// Pure but for the host's buffers: it is told what ended, and writes instructions. Used by one
// thread, the scheduler's.
#pragma once

#include <span>
#include <vector>

#include "memory/evictor.h"
#include "memory/final_writes.h"
#include "memory/hand_over.h"
#include "memory/memory_listener.h"
#include "memory/outcome.h"
#include "memory/replicas.h"
#include "memory/residency.h"
#include "memory/staging.h"
#include "memory/tile_forecast.h"
#include "memory/transfers.h"
#include "memory/write_backs.h"

namespace quadriga {

class Memory {
 public:
  /// `spaces`: what each space has, by its number.
  Memory(Instructions& instructions, const Machine& machine, std::span<const SpaceResources> spaces,
         TileForecast& forecast, MemoryListener& listener, const MemoryOptions& options);

  Replicas& replicas() noexcept { return replicas_; }
  const Replicas& replicas() const noexcept { return replicas_; }
  const Directory& directory() const noexcept { return replicas_.directory(); }
  Transfers& transfers() noexcept { return transfers_; }
  const Transfers& transfers() const noexcept { return transfers_; }
  Residency& residency() noexcept { return residency_; }
  const Residency& residency() const noexcept { return residency_; }
  WriteBacks& write_backs() noexcept { return write_backs_; }
  FinalWrites& final_writes() noexcept { return final_writes_; }
  Evictor& evictor() noexcept { return evictor_; }
  HandOver& hand_over() noexcept { return hand_over_; }
  Staging& staging() noexcept { return staging_; }
  const Pool& pool(SpaceId space) const noexcept { return residency_.pool(space); }
  /// What a block of this shape takes of a space's pool.
  std::size_t rounded(std::size_t width_bytes, std::size_t columns, SpaceId space) const noexcept {
    return pool(space).rounded(replicas_.block_bytes(width_bytes, columns, space));
  }

  /// Tells that a kernel was queued: event `done`. The stream has waited for what it must follow.
  void used(TileId tile, SpaceId space, Access access, Event done);
  /// Takes a completion; false if it isn't of a copy.
  bool completed(const Completion& completion);
  /// The content is lost: its producer failed.
  void lost(TileId tile) { replicas_.directory().lost(tile); }
  /// Home still holds what was overwritten elsewhere and lost there.
  void restore_home(TileId tile) { replicas_.directory().restored(tile); }
  /// A device is gone. Tiles whose only replica or whose home it held are written to `lost`.
  void space_lost(SpaceId space, std::vector<TileId>& lost);
  void validate();

 private:
  MemoryListener& listener_;
  Replicas replicas_;
  Transfers transfers_;
  Residency residency_;
  WriteBacks write_backs_;
  FinalWrites final_writes_;
  Evictor evictor_;
  HandOver hand_over_;
  Staging staging_;
  std::vector<Transfer> ended_;  ///< Scratch.
};

}  // namespace quadriga
