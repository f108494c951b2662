// SPDX-License-Identifier: BSD-3-Clause
// src/memory/arena.h: hands out blocks of one device's memory by offset. Pure: touches no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace quadriga {

/// Best-fit allocator over [0, capacity): the smallest block that is large enough, the one freed
/// last among equals; neighbours are joined when freed, offsets are deterministic. Blocks of equal
/// size, as tiles are, never fragment it. Allocates nothing once it has held its largest number of
/// blocks.
///
/// Cost: constant, beside a search among the sizes of free blocks, which are few.
class Arena {
 public:
  static constexpr std::size_t usual_alignment = 256;

  /// Offsets are multiples of `alignment`, a power of two; what `capacity` exceeds one by is
  /// unused.
  explicit Arena(std::size_t capacity, std::size_t alignment = usual_alignment);

  /// Offset of a block of at least `bytes`, at least one unit of alignment; empty if none is large
  /// enough.
  std::optional<std::size_t> allocate(std::size_t bytes);
  /// Errors: invalid_argument if no block in use starts there; nothing is changed then.
  void deallocate(std::size_t offset);
  /// Deallocates all blocks. Capacity and alignment never change, but for cut(): any thread may
  /// read them.
  void clear();
  /// Gives up the free bytes behind the last block in use, for good. Cost: the number of blocks.
  void cut();

  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t used() const noexcept { return used_; }
  std::size_t largest_free() const noexcept;
  /// What a request really takes.
  std::size_t rounded(std::size_t bytes) const noexcept { return rounded(bytes, alignment_); }
  /// The same of any arena of that alignment.
  static std::size_t rounded(std::size_t bytes, std::size_t alignment) noexcept;
  bool empty() const noexcept { return used_ == 0; }

  /// Free bytes that touch a block in use: those that deallocate(offset) would join to it.
  struct Room {
    std::size_t before = 0;
    std::size_t bytes = 0;  ///< Of the block itself.
    std::size_t after = 0;
  };
  /// Errors: invalid_argument if no block in use starts there.
  Room room(std::size_t offset) const;

  /// Throws internal if blocks overlap, are not joined, or don't sum up.
  void validate() const;

 private:
  using Index = std::uint32_t;
  static constexpr Index none = 0xffffffff;

  /// A stretch of the arena, linked to its neighbours by address; a free one also to those of its
  /// size, and one that stands for nothing to the next such (by right).
  struct Block {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    Index left = none;
    Index right = none;
    Index newer = none;
    Index older = none;
    bool free = false;
  };
  /// The free blocks of one size; there is at least one.
  struct Size {
    std::size_t bytes;
    Index newest;
  };

  Index make_block(std::size_t offset, std::size_t bytes);
  void join_right(Index block);
  void enlist(Index block);
  void delist(Index block);
  std::size_t size_at_least(std::size_t bytes) const noexcept;

  std::size_t slot_of(std::size_t offset) const noexcept;
  void remember(Index block);
  void forget(std::size_t slot) noexcept;
  Index find(std::size_t offset) const;
  void grow_table();

  std::size_t capacity_;
  const std::size_t alignment_;
  std::size_t used_ = 0;
  std::size_t blocks_in_use_ = 0;
  std::vector<Block> blocks_;
  Index unused_ = none;
  std::vector<Size> sizes_;  ///< Ascending.
  std::vector<Index>
      table_;  ///< Blocks in use by offset: open addressing, a power of two, half full.
};

}  // namespace quadriga
