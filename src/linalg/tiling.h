// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/tiling.h: a dimension cut into tiles.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace quadriga::linalg {

/// Numbers of parts that searches try: they grow by halves or thirds.
constexpr std::array<std::int64_t, 11> part_counts{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};

/// Lengths of so many nearly equal parts of a dimension, the longest first and none below `least`
/// but the whole.
inline std::vector<std::int64_t> part_lengths(std::int64_t size, std::int64_t least) {
  std::vector<std::int64_t> lengths{size};
  for (const std::int64_t count : part_counts)
    if (const std::int64_t length = (size + count - 1) / count; count > 1 && length >= least)
      lengths.push_back(length);
  return lengths;
}

/// Tiles of one length, the last one perhaps shorter; or tiles that begin where `bounds` says.
struct Tiling {
  std::int64_t size = 0;
  std::int64_t tile = 1;  ///< None is longer.
  /// Where each tile begins, and the end, ascending; empty: every `tile`.
  std::vector<std::int64_t> bounds = {};

  std::int64_t count() const noexcept {
    if (!bounds.empty()) return static_cast<std::int64_t>(bounds.size()) - 1;
    return (size + tile - 1) / tile;
  }
  std::int64_t first(std::int64_t index) const noexcept {
    return bounds.empty() ? index * tile : bounds[static_cast<std::size_t>(index)];
  }
  std::int64_t length(std::int64_t index) const noexcept {
    if (!bounds.empty()) return first(index + 1) - first(index);
    return std::min(tile, size - index * tile);
  }
  /// The tile that holds an element.
  std::int64_t holder(std::int64_t element) const noexcept {
    if (bounds.empty()) return element / tile;
    return std::ranges::upper_bound(bounds, element) - bounds.begin() - 1;
  }
};

}  // namespace quadriga::linalg
