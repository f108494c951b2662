// SPDX-License-Identifier: BSD-3-Clause
// src/memory/arena.cpp: blocks in a pool, linked by address and by size, found by a hash of the
// offset.
#include "memory/arena.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <bit>
#include <string_view>

namespace quadriga {
namespace {

void hold(bool condition, std::string_view invariant) {
  if (!condition) fail(Errc::internal, fmt::format("Arena: broken: {}", invariant));
}

}  // namespace

Arena::Arena(std::size_t capacity, std::size_t alignment, std::span<const std::size_t> reserves)
    : capacity_(capacity), alignment_(alignment) {
  require(std::has_single_bit(alignment), "Arena: expected an alignment that is a power of two");
  parts_.push_back({.bytes = capacity});
  for (const std::size_t bytes : reserves) {
    // A gap: what ends one part must not seem to touch what begins the next.
    const std::size_t begin = rounded(parts_.back().begin + parts_.back().bytes) + alignment_;
    parts_.push_back({.begin = begin, .bytes = bytes});
    capacity_ += bytes;
  }
  clear();
}

void Arena::clear() {
  used_ = blocks_in_use_ = 0;
  blocks_.clear();
  unused_ = none;
  sizes_.fill({});
  table_.assign(64, none);
  for (Part& part : parts_) open(part);
}

/// As one free block.
void Arena::open(Part& part) {
  part.used = 0;
  part.first = none;
  const std::size_t whole = part.bytes / alignment_ * alignment_;
  if (whole > 0) enlist(part.first = make_block(part.begin, whole));
}

std::optional<std::size_t> Arena::allocate(std::size_t bytes) {
  const std::size_t wanted = rounded(bytes);
  if (bytes > capacity_ || wanted > largest_free()) return std::nullopt;
  const Sizes& main = sizes_[0];
  const Sizes& sizes = !main.empty() && main.back().bytes >= wanted ? main : sizes_[1];
  return take(sizes[size_at_least(sizes, wanted)].newest, wanted);
}

/// Of a free block; its rest stays free.
std::size_t Arena::take(Index block, std::size_t wanted) {
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
  parts_[part_of(blocks_[block].offset)].used += wanted;
  return blocks_[block].offset;
}

void Arena::deallocate(std::size_t offset) {
  const Index found = find(offset);
  forget(slot_of(offset));
  used_ -= blocks_[found].bytes;
  parts_[part_of(offset)].used -= blocks_[found].bytes;
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

std::size_t Arena::largest_free() const noexcept {
  std::size_t largest = 0;
  for (const Sizes& sizes : sizes_)
    if (!sizes.empty()) largest = std::max(largest, sizes.back().bytes);
  return largest;
}

std::size_t Arena::part_of(std::size_t offset) const noexcept {
  std::size_t part = parts_.size() - 1;
  while (offset < parts_[part].begin) --part;
  return part;
}

void Arena::withdraw(std::size_t part) {
  Part& leaving = parts_[part];
  require(part > 0 && !leaving.withdrawn, "Arena: only a reserve in use can be withdrawn");
  for (Index block = leaving.first; block != none; block = blocks_[block].right)
    if (blocks_[block].free) {
      delist(block);
      blocks_[block].free = true;
    }
  leaving.withdrawn = true;
}

void Arena::restore(std::size_t part) {
  Part& back = parts_[part];
  require(back.withdrawn && back.bytes > 0, "Arena: only a reserve that is withdrawn comes back");
  back.withdrawn = false;
  for (Index block = back.first; block != none; block = blocks_[block].right)
    if (blocks_[block].free) enlist(block);
}

void Arena::remove(std::size_t part) {
  Part& gone = parts_[part];
  require(gone.withdrawn && gone.used == 0, "Arena: only an empty reserve that is withdrawn goes");
  if (gone.first != none) {
    blocks_[gone.first] = Block{.right = unused_};
    unused_ = gone.first;
  }
  capacity_ -= gone.bytes;
  gone.bytes = 0;
  gone.first = none;
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

/// On the list of its size, unless its part is withdrawn.
void Arena::enlist(Index block) {
  blocks_[block].free = true;
  if (parts_[part_of(blocks_[block].offset)].withdrawn) return;
  Sizes& sizes = sizes_at(blocks_[block].offset);
  const std::size_t bytes = blocks_[block].bytes;
  const std::size_t at = size_at_least(sizes, bytes);
  if (at == sizes.size() || sizes[at].bytes != bytes)
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(at), Size{bytes, none});
  const Index older = sizes[at].newest;
  blocks_[block].newer = none;
  blocks_[block].older = older;
  if (older != none) blocks_[older].newer = block;
  sizes[at].newest = block;
}

void Arena::delist(Index block) {
  Block& taken = blocks_[block];
  taken.free = false;
  if (parts_[part_of(taken.offset)].withdrawn) return;
  if (taken.older != none) blocks_[taken.older].newer = taken.newer;
  if (taken.newer != none) {
    blocks_[taken.newer].older = taken.older;
    return;
  }
  Sizes& sizes = sizes_at(taken.offset);
  const auto size = sizes.begin() + static_cast<std::ptrdiff_t>(size_at_least(sizes, taken.bytes));
  size->newest = taken.older;
  if (size->newest == none) sizes.erase(size);
}

/// The index of the smallest that is at least `bytes`.
std::size_t Arena::size_at_least(const Sizes& sizes, std::size_t bytes) noexcept {
  const auto found = std::ranges::lower_bound(sizes, bytes, {}, &Size::bytes);
  return static_cast<std::size_t>(found - sizes.begin());
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
  std::size_t in_use_bytes = 0, listed_bytes = 0, bytes = 0;
  for (const Part& part : parts_) {
    check(part);
    bytes += part.bytes;
    in_use_bytes += part.used;
    if (!part.withdrawn) listed_bytes += part.bytes / alignment_ * alignment_ - part.used;
  }
  hold(bytes == capacity_ && in_use_bytes == used_, "parts sum up");
  for (const Sizes& sizes : sizes_) {
    hold(std::ranges::adjacent_find(sizes, std::ranges::greater_equal{}, &Size::bytes) ==
             sizes.end(),
         "sizes ascend");
    for (const Size& size : sizes)
      for (Index index = size.newest; index != none; index = blocks_[index].older) {
        hold(blocks_[index].free && blocks_[index].bytes == size.bytes,
             "free blocks are listed by size");
        listed_bytes -= size.bytes;
      }
  }
  hold(listed_bytes == 0, "every free block is listed, unless its part is withdrawn");
}

/// The blocks of a part.
void Arena::check(const Part& part) const {
  std::size_t end = part.begin, in_use_bytes = 0;
  Index left = none;
  for (Index index = part.first; index != none; index = blocks_[index].right) {
    const Block& block = blocks_[index];
    hold(block.offset == end && block.bytes > 0, "blocks lie one after another");
    hold(block.offset % alignment_ == 0, "offsets are aligned");
    hold(block.left == left, "neighbours agree");
    hold(!block.free || left == none || !blocks_[left].free, "free neighbours are joined");
    hold(block.free || table_[slot_of(block.offset)] == index, "blocks in use are in the table");
    in_use_bytes += block.free ? 0 : block.bytes;
    end += block.bytes;
    left = index;
  }
  hold(end - part.begin == part.bytes / alignment_ * alignment_, "blocks cover their part");
  hold(in_use_bytes == part.used, "blocks in use sum up");
}

}  // namespace quadriga
