// SPDX-License-Identifier: BSD-3-Clause
// src/memory/arena.cpp: blocks in a pool, linked by address and by size, found by a hash of the
// offset.
#include "memory/arena.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <bit>

namespace quadriga {

Arena::Arena(std::size_t capacity, std::size_t alignment)
    : capacity_(capacity), alignment_(alignment) {
  require(std::has_single_bit(alignment), "Arena: expected an alignment that is a power of two");
  clear();
}

void Arena::clear() {
  used_ = blocks_in_use_ = 0;
  blocks_.clear();
  unused_ = none;
  sizes_.clear();
  table_.assign(64, none);
  const std::size_t whole = capacity_ / alignment_ * alignment_;
  if (whole > 0) enlist(make_block(0, whole));
}

std::optional<std::size_t> Arena::allocate(std::size_t bytes) {
  const std::size_t wanted = rounded(bytes);
  if (bytes > capacity_ || wanted > largest_free()) return std::nullopt;
  const Index block = sizes_[size_at_least(wanted)].newest;
  delist(block);
  const std::size_t rest = blocks_[block].bytes - wanted;
  if (rest > 0) {
    const Index tail = make_block(blocks_[block].offset + wanted, rest);
    const Index right = blocks_[block].right;
    blocks_[tail].left = block;
    blocks_[tail].right = right;
    if (right != none) blocks_[right].left = tail;
    blocks_[block].right = tail;
    blocks_[block].bytes = wanted;
    enlist(tail);
  }
  remember(block);
  used_ += wanted;
  return blocks_[block].offset;
}

void Arena::deallocate(std::size_t offset) {
  const Index found = find(offset);
  forget(slot_of(offset));
  used_ -= blocks_[found].bytes;
  Index block = found;
  const Index right = blocks_[block].right;
  if (right != none && blocks_[right].free) {
    delist(right);
    join_right(block);
  }
  const Index left = blocks_[block].left;
  if (left != none && blocks_[left].free) {
    delist(left);
    join_right(left);
    block = left;
  }
  enlist(block);
}

void Arena::cut() {
  capacity_ = capacity_ / alignment_ * alignment_;
  if (capacity_ == 0) return;
  Index last = 0;
  while (blocks_[last].right != none) last = blocks_[last].right;
  if (!blocks_[last].free) return;
  capacity_ = blocks_[last].offset;
  if (last == 0) return clear();
  delist(last);
  blocks_[blocks_[last].left].right = none;
  blocks_[last] = Block{.right = unused_};
  unused_ = last;
}

std::size_t Arena::largest_free() const noexcept {
  return sizes_.empty() ? 0 : sizes_.back().bytes;
}

std::size_t Arena::rounded(std::size_t bytes, std::size_t alignment) noexcept {
  const std::size_t units = bytes / alignment + (bytes % alignment != 0);
  return std::max<std::size_t>(units, 1) * alignment;
}

Arena::Room Arena::room(std::size_t offset) const {
  const Block& block = blocks_[find(offset)];
  const auto free_bytes = [this](Index neighbour) {
    return neighbour != none && blocks_[neighbour].free ? blocks_[neighbour].bytes : 0;
  };
  return {free_bytes(block.left), block.bytes, free_bytes(block.right)};
}

/// A block that is neither free nor in use yet.
Arena::Index Arena::make_block(std::size_t offset, std::size_t bytes) {
  Index block = unused_;
  if (block == none) {
    block = static_cast<Index>(blocks_.size());
    blocks_.emplace_back();
  } else {
    unused_ = blocks_[block].right;
  }
  blocks_[block] = Block{.offset = offset, .bytes = bytes};
  return block;
}

/// Lengthens a block by its right neighbour, which is on no list any more.
void Arena::join_right(Index block) {
  const Index gone = blocks_[block].right;
  const Index right = blocks_[gone].right;
  blocks_[block].bytes += blocks_[gone].bytes;
  blocks_[block].right = right;
  if (right != none) blocks_[right].left = block;
  blocks_[gone] = Block{.right = unused_};
  unused_ = gone;
}

void Arena::enlist(Index block) {
  const std::size_t bytes = blocks_[block].bytes;
  const std::size_t at = size_at_least(bytes);
  if (at == sizes_.size() || sizes_[at].bytes != bytes)
    sizes_.insert(sizes_.begin() + static_cast<std::ptrdiff_t>(at), Size{bytes, none});
  const Index older = sizes_[at].newest;
  blocks_[block].free = true;
  blocks_[block].newer = none;
  blocks_[block].older = older;
  if (older != none) blocks_[older].newer = block;
  sizes_[at].newest = block;
}

void Arena::delist(Index block) {
  Block& taken = blocks_[block];
  taken.free = false;
  if (taken.older != none) blocks_[taken.older].newer = taken.newer;
  if (taken.newer != none) {
    blocks_[taken.newer].older = taken.older;
    return;
  }
  const auto size = sizes_.begin() + static_cast<std::ptrdiff_t>(size_at_least(taken.bytes));
  size->newest = taken.older;
  if (size->newest == none) sizes_.erase(size);
}

/// Index into sizes_ of the smallest that is at least `bytes`.
std::size_t Arena::size_at_least(std::size_t bytes) const noexcept {
  const auto found = std::ranges::lower_bound(sizes_, bytes, {}, &Size::bytes);
  return static_cast<std::size_t>(found - sizes_.begin());
}

/// Where the block in use at `offset` is in the table, or else the empty slot where it belongs.
std::size_t Arena::slot_of(std::size_t offset) const noexcept {
  const std::size_t mask = table_.size() - 1;
  // Multiplication spreads over the upper half what multiples of a tile have in common below.
  std::size_t slot = (offset / alignment_ * 0x9e3779b97f4a7c15U >> 32) & mask;
  while (table_[slot] != none && blocks_[table_[slot]].offset != offset) slot = (slot + 1) & mask;
  return slot;
}

void Arena::remember(Index block) {
  if (++blocks_in_use_ * 2 > table_.size()) grow_table();
  table_[slot_of(blocks_[block].offset)] = block;
}

/// Empties a slot and moves up what lies beyond it, so that a search never meets a gap too early.
void Arena::forget(std::size_t slot) noexcept {
  --blocks_in_use_;
  table_[slot] = none;
  const std::size_t mask = table_.size() - 1;
  for (std::size_t next = (slot + 1) & mask; table_[next] != none; next = (next + 1) & mask) {
    const Index moved = table_[next];
    table_[next] = none;
    table_[slot_of(blocks_[moved].offset)] = moved;
  }
}

Arena::Index Arena::find(std::size_t offset) const {
  const Index block = table_[slot_of(offset)];
  if (block == none) [[unlikely]]
    fail(Errc::invalid_argument, fmt::format("Arena: no block in use starts at offset {}", offset));
  return block;
}

void Arena::grow_table() {
  std::vector<Index> old(table_.size() * 2, none);
  old.swap(table_);
  for (const Index block : old)
    if (block != none) table_[slot_of(blocks_[block].offset)] = block;
}

void Arena::validate() const {
  const auto hold = [](bool condition, std::string_view invariant) {
    if (!condition) fail(Errc::internal, fmt::format("Arena: broken: {}", invariant));
  };
  std::size_t end = 0, in_use = 0, in_use_bytes = 0, free_blocks = 0;
  Index left = none;
  // The block at offset 0 is made first and joined only from the right, so that it keeps its index.
  for (Index index = blocks_.empty() ? none : 0; index != none; index = blocks_[index].right) {
    const Block& block = blocks_[index];
    hold(block.offset == end && block.bytes > 0, "blocks lie one after another");
    hold(block.offset % alignment_ == 0, "offsets are aligned");
    hold(block.left == left, "neighbours agree");
    hold(!block.free || left == none || !blocks_[left].free, "free neighbours are joined");
    hold(block.free || table_[slot_of(block.offset)] == index, "blocks in use are in the table");
    free_blocks += block.free;
    in_use += !block.free;
    in_use_bytes += block.free ? 0 : block.bytes;
    end += block.bytes;
    left = index;
  }
  hold(end == capacity_ / alignment_ * alignment_, "blocks cover the arena");
  hold(in_use == blocks_in_use_ && in_use_bytes == used_, "blocks in use sum up");
  hold(std::ranges::adjacent_find(sizes_, std::ranges::greater_equal{}, &Size::bytes) ==
           sizes_.end(),
       "sizes ascend");
  for (const Size& size : sizes_)
    for (Index index = size.newest; index != none; index = blocks_[index].older, --free_blocks)
      hold(blocks_[index].free && blocks_[index].bytes == size.bytes,
           "free blocks are listed by size");
  hold(free_blocks == 0, "every free block is listed");
}

}  // namespace quadriga
