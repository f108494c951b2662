// SPDX-License-Identifier: BSD-3-Clause
// src/memory/pool.h: the blocks of one space's memory, and which tiles have one.
//
// A device's are cut from its arena, where those that leave must lie side by side; the host's are
// buffers (spill.h), which lie anywhere.
//
// Invariants
//   1. A tile is among the residents of a space's pool, once, exactly while its replica there has a
//      block, which the arena or the buffers count; these by the nodes of the host as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "memory/arena.h"
#include "memory/eviction.h"
#include "memory/replicas.h"
#include "memory/residents.h"
#include "memory/spill.h"

namespace quadriga {

class Pool {
 public:
  /// Without memory.
  Pool() = default;
  /// A device's: `bytes` from `base` on.
  Pool(SpaceId space, std::byte* base, std::size_t bytes) : space_(space), base_(base) {
    arena_.emplace(bytes);
  }
  /// The host's buffers.
  explicit Pool(Spill& spill) : space_(host_space), spill_(&spill) {}

  bool has_memory() const noexcept { return arena_ || spill_; }
  /// Gives a tile a block; false if there is none to spare. `near`: a node of the host, which a
  /// buffer is for.
  bool allocate(Replicas& replicas, TileId tile, int near = any_node);
  /// Takes it back: nothing queued touches it.
  void deallocate(Replicas& replicas, TileId tile);
  /// Forgets all blocks: the memory is gone.
  void clear(Replicas& replicas);

  /// Of a file that gets no more of its disk: nothing lies behind what is used now.
  void cut() {
    if (arena_) arena_->cut();
  }

  /// What has to become free for a block of these bytes, or for several where blocks lie anywhere.
  std::size_t lacking(std::size_t bytes) const noexcept {
    // Even where there seems to be room, a disk may be full.
    return arena_ || bytes <= free_bytes() ? bytes : bytes - free_bytes();
  }
  /// Chooses who leaves so that a block of `bytes` fits, or `bytes` where blocks lie anywhere;
  /// writes them to `out`, which is as long as the candidates are many. Returns how many.
  std::size_t choose(const EvictionRule& rule, std::span<Candidate> candidates, std::size_t bytes,
                     std::span<TileId> out) const;

  std::size_t capacity() const noexcept { return arena_ ? arena_->capacity() : spill_->limit(); }
  std::size_t used() const noexcept { return arena_ ? arena_->used() : spill_->used(); }
  std::size_t free_bytes() const noexcept { return capacity() - used(); }
  /// Most in use at once so far.
  std::size_t most() const noexcept { return arena_ ? most_ : spill_->most(); }
  /// What one allocation of these bytes takes.
  std::size_t rounded(std::size_t bytes) const noexcept {
    return arena_ ? arena_->rounded(bytes) : Spill::rounded(bytes);
  }
  /// Of a tile's block from the memory's begin on; 0 where blocks lie anywhere.
  std::size_t offset(const Replica& replica) const noexcept {
    return arena_ ? static_cast<std::size_t>(replica.block - base_) : 0;
  }
  const std::optional<Arena>& arena() const noexcept { return arena_; }
  std::span<const TileId> residents() const noexcept { return residents_.tiles(); }
  Residents& leaving() noexcept { return residents_; }
  void validate(const Replicas& replicas) const;

 private:
  SpaceId space_ = host_space;
  std::byte* base_ = nullptr;
  std::optional<Arena> arena_;
  Spill* spill_ = nullptr;
  std::size_t most_ = 0;
  Residents residents_;
};

}  // namespace quadriga
