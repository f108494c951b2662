// SPDX-License-Identifier: BSD-3-Clause
// src/memory/pool.h: the blocks of one space's memory, and which tiles have one.
//
// A device's are cut from its arena, where those that leave must lie side by side; the host's are
// buffers (spill.h), which lie anywhere.
//
// Invariants
//   1. A tile is in `residents` of a space's pool, once, exactly while its replica there has a
//      block, which the arena or the buffers count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "memory/arena.h"
#include "memory/eviction.h"
#include "memory/replicas.h"
#include "memory/reserve.h"
#include "memory/spill.h"

namespace quadriga {

class Pool {
 public:
  /// Without memory.
  Pool() = default;
  /// A device's: `bytes` from `base` on, and reserves.
  Pool(SpaceId space, std::byte* base, std::size_t bytes, std::span<const Reserve> reserves);
  /// The host's buffers.
  explicit Pool(Spill& spill) : space_(host_space), spill_(&spill) {}

  bool has_memory() const noexcept { return arena_ || spill_; }
  /// Gives a tile a block; false if there is none to spare.
  bool allocate(Replicas& replicas, TileId tile);
  /// Takes it back: nothing queued touches it.
  void deallocate(Replicas& replicas, TileId tile);
  /// Forgets all blocks: the memory is gone.
  void clear(Replicas& replicas);

  /// Chooses who leaves so that a block of `bytes` fits, or `bytes` where blocks lie anywhere;
  /// writes them to `out`, which is as long as the candidates are many. Returns how many.
  std::size_t choose(const EvictionRule& rule, std::span<Candidate> candidates, std::size_t bytes,
                     std::span<TileId> out) const;

  // Reserves of a device, that can be given back: see arena.h. Part 0 is no reserve.
  std::size_t parts() const noexcept { return arena_ ? arena_->parts() : 0; }
  /// What a part still has: no bytes once it was given back.
  Reserve part(std::size_t part) const noexcept { return {bases_[part], arena_->part_bytes(part)}; }
  std::size_t part_of(const Replica& replica) const noexcept {
    return arena_->part_of(offset(replica));
  }
  bool is_withdrawn(std::size_t part) const noexcept { return arena_->is_withdrawn(part); }
  bool is_withdrawn(const Replica& replica) const noexcept {
    return parts() > 1 && is_withdrawn(part_of(replica));
  }
  void withdraw(std::size_t part) { arena_->withdraw(part); }
  void restore(std::size_t part) { arena_->restore(part); }
  /// True if nothing lay in it: it is forgotten.
  bool remove_if_empty(std::size_t part);

  std::size_t capacity() const noexcept { return arena_ ? arena_->capacity() : spill_->limit(); }
  /// What tasks can count on, whatever is given back. Any thread.
  std::size_t lasting_bytes() const noexcept {
    return arena_ ? arena_->part_bytes(0) : spill_->limit();
  }
  std::size_t used() const noexcept { return arena_ ? arena_->used() : spill_->used(); }
  std::size_t free_bytes() const noexcept { return capacity() - used(); }
  /// Most in use at once so far.
  std::size_t most() const noexcept { return arena_ ? most_ : spill_->most(); }
  /// What one allocation of these bytes takes.
  std::size_t rounded(std::size_t bytes) const noexcept {
    return arena_ ? arena_->rounded(bytes) : Spill::rounded(bytes);
  }
  /// Of a tile's block from the memory's begin on; 0 where blocks lie anywhere.
  std::size_t offset(const Replica& replica) const noexcept;
  std::span<const TileId> residents() const noexcept { return residents_; }
  void validate(const Replicas& replicas) const;

 private:
  SpaceId space_ = host_space;
  std::vector<std::byte*> bases_;  ///< By part of the arena.
  std::optional<Arena> arena_;
  Spill* spill_ = nullptr;
  std::size_t most_ = 0;
  std::vector<TileId> residents_;
  std::vector<std::uint32_t> at_;  ///< By tile: its place in `residents_`.
};

}  // namespace quadriga
