// SPDX-License-Identifier: BSD-3-Clause
// src/graph/regions.h: memory that data are at home in, found by its address.
//
// Pure; its owner guards it. Addresses of different spaces differ, as CUDA's do.
//
// Invariants
//   1. A datum is in at most one place of `exact_`, and in one of `by_size_`: that of its number
//      of bytes from first to last, by powers of two. So who looks for what overlaps a range looks
//      back from it no farther than twice what he finds is long.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "graph/task.h"

namespace quadriga {

/// Columns of bytes, each `pitch` after the one before. A single one may have any pitch.
struct Region {
  std::uintptr_t first = 0;
  std::size_t width = 0;
  std::size_t columns = 0;
  std::size_t pitch = 0;

  bool empty() const noexcept { return width == 0 || columns == 0; }
  /// From its first byte to its last.
  std::size_t span() const noexcept { return (columns - 1) * pitch + width; }
};

Region region_of(const Datum& datum) noexcept;
Region region_of(const View& view) noexcept;
/// Whether two regions share a byte; where they have several columns each, of different pitches,
/// whether their ranges do.
bool overlap(const Region& a, const Region& b) noexcept;
/// Whether one region has all bytes of another; false where that would take long to find out.
bool covers(const Region& whole, const Region& part) noexcept;

/// Those of registered data; without elements they share nothing, and aren't kept.
class Regions {
 public:
  /// What is registered with exactly this home, shape and type; null if there is none.
  Datum* find(const std::byte* home, std::int64_t rows, std::int64_t cols, std::int64_t ld,
              DType dtype) const;
  void add(Datum& datum);
  /// It is found by its memory no more, but still overlaps others.
  void leave(Datum& datum);
  void remove(Datum& datum);
  /// Adds what overlaps a region.
  void overlapping(const Region& region, std::vector<Datum*>& out) const;

 private:
  struct Key {
    const std::byte* home;
    std::int64_t rows;
    std::int64_t cols;
    std::int64_t ld;
    DType dtype;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  static Key key_of(const std::byte* home, std::int64_t rows, std::int64_t cols, std::int64_t ld,
                    DType dtype) noexcept {
    return {home, rows, cols, cols > 1 ? ld : rows, dtype};
  }

  std::unordered_map<Key, Datum*, Hash> exact_;
  std::array<std::multimap<std::uintptr_t, Datum*>, 64> by_size_;  ///< By first byte.
};

}  // namespace quadriga
