// SPDX-License-Identifier: BSD-3-Clause
// src/memory/slices.h: how the copy of a tile is cut into slices, each with an event of its own: of
// columns, or of the bytes of its only column.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace quadriga {

/// Some columns of a tile, or some bytes of its only one.
struct Slice {
  std::size_t first_column = 0;
  std::size_t columns = 0;
  std::size_t first_byte = 0;  ///< Within each of these columns.
  std::size_t bytes = 0;
};

/// Slices of one column begin at multiples of this many bytes, where copies are quick.
inline constexpr std::size_t slice_alignment = 256;

/// Into how many slices a tile can be cut, none of which is empty.
constexpr std::size_t most_slices(std::size_t width_bytes, std::size_t columns) noexcept {
  return std::max<std::size_t>(columns == 1 ? width_bytes / slice_alignment : columns, 1);
}

/// One of so many slices of a tile, at most most_slices(); their sizes differ by one column at
/// most, or by one alignment.
constexpr Slice slice_of(std::size_t width_bytes, std::size_t columns, std::size_t slices,
                         std::size_t index) noexcept {
  if (columns != 1) {
    const std::size_t first = columns * index / slices;
    return {first, columns * (index + 1) / slices - first, 0, width_bytes};
  }
  const std::size_t units = width_bytes / slice_alignment;
  const std::size_t first = units * index / slices * slice_alignment;
  const std::size_t last = units * (index + 1) / slices * slice_alignment;
  return {0, 1, first, (index + 1 == slices ? width_bytes : last) - first};
}

/// Into how many slices to cut a copy that is forwarded. The shorter of both copies takes so long,
/// each slice of either so much longer: n of them add seconds/n + n*latency to the longer copy.
inline std::size_t slices_for(double seconds, double latency, std::size_t most_slices) noexcept {
  // More gain less than a sixteenth of the shorter copy.
  constexpr double most = 16;
  const double best = latency > 0 ? std::min(std::sqrt(seconds / latency), most) : most;
  return std::clamp<std::size_t>(static_cast<std::size_t>(best), 1,
                                 std::max<std::size_t>(most_slices, 1));
}

}  // namespace quadriga
