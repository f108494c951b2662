// SPDX-License-Identifier: BSD-3-Clause
// src/memory/pool.cpp: blocks given and taken back, and the list of who has one.
#include "memory/pool.h"

#include <quadriga/error.h>

#include <algorithm>
#include <map>

namespace quadriga {

bool Pool::allocate(Replicas& replicas, TileId tile, int near) {
  const std::size_t bytes = replicas.block_bytes(tile, space_);
  std::byte* block = nullptr;
  if (spill_) {
    block = spill_->allocate(bytes, near);
  } else if (const auto offset = arena_->allocate(bytes)) {
    block = base_ + *offset;
    most_ = std::max(most_, arena_->used());
  }
  if (!block) return false;
  replicas.give_block(tile, space_, block, spill_ ? spill_->node(block) : any_node);
  residents_.add(tile);
  return true;
}

void Pool::deallocate(Replicas& replicas, TileId tile) {
  residents_.remove(tile);
  const Replica& replica = replicas.at(tile, space_);
  if (spill_)
    spill_->deallocate(replica.block, replicas.block_bytes(tile, space_));
  else
    arena_->deallocate(offset(replica));
  replicas.take_block(tile, space_);
}

void Pool::clear(Replicas& replicas) {
  for (const TileId tile : residents_.tiles()) replicas.clear(tile, space_);
  residents_.clear();
  if (arena_) arena_->clear();
}

std::size_t Pool::choose(const EvictionRule& rule, std::span<Candidate> candidates,
                         std::size_t bytes, std::span<TileId> out) const {
  if (arena_)
    return choose_victims(rule, *arena_, candidates, std::max<std::size_t>(bytes, 1), out);
  const std::size_t count = choose_anywhere(rule, candidates, bytes);
  std::ranges::transform(candidates.first(count), out.begin(), &Candidate::tile);
  return count;
}

void Pool::validate(const Replicas& replicas) const {
  if (arena_) arena_->validate();
  std::map<int, std::size_t> bytes_of_nodes;
  residents_.validate();
  for (const TileId tile : residents_.tiles()) {
    if (!replicas.has_block(tile, space_) || replicas.at_home(tile, space_))
      fail(Errc::internal, "a resident tile has no block, or is at home where it has one");
    bytes_of_nodes[replicas.at(tile, space_).node] += rounded(replicas.block_bytes(tile, space_));
  }
  for (const auto& [node, bytes] : bytes_of_nodes)
    if (spill_ && node != any_node && bytes != spill_->nodes().used(node))
      fail(Errc::internal, "buffers on a node of the host are miscounted");
}

}  // namespace quadriga
