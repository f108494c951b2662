// SPDX-License-Identifier: BSD-3-Clause
// src/memory/arena.h: hands out blocks of one device's memory by offset. Pure: touches no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace quadriga {

/// First-fit-by-size allocator over [0, capacity): best fit, neighbours joined when freed, offsets
/// deterministic. Blocks of equal size, as tiles are, never fragment it.
class Arena {
 public:
  /// Offsets are multiples of `alignment`, a power of two.
  explicit Arena(std::size_t capacity, std::size_t alignment = 256);

  /// Offset of a block of at least `bytes`; empty if none is large enough.
  std::optional<std::size_t> allocate(std::size_t bytes);
  void deallocate(std::size_t offset);

  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t used() const noexcept { return used_; }
  std::size_t largest_free() const noexcept;
  /// What a request really takes.
  std::size_t rounded(std::size_t bytes) const noexcept;
  bool empty() const noexcept { return used_ == 0; }
  /// Throws internal if blocks overlap, are not joined, or don't sum up.
  void validate() const;

 private:
  std::size_t capacity_;
  std::size_t alignment_;
  std::size_t used_ = 0;
  std::map<std::size_t, std::size_t> free_by_offset_;
  std::set<std::pair<std::size_t, std::size_t>> free_by_size_;
  std::map<std::size_t, std::size_t> used_by_offset_;
};

}  // namespace quadriga
