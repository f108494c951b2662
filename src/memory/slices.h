// SPDX-License-Identifier: BSD-3-Clause
// src/memory/slices.h: how the copy of a tile is cut into slices of columns, each with an event of
// its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace quadriga {

struct ColumnRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

/// One of so many slices of a tile; they differ by one column at most, and none is empty if there
/// are as many columns.
constexpr ColumnRange slice_of(std::size_t columns, std::size_t slices,
                               std::size_t index) noexcept {
  const std::size_t first = columns * index / slices;
  return {first, columns * (index + 1) / slices - first};
}

/// Into how many slices to cut a copy that is forwarded. The shorter of both copies takes so long,
/// each slice of either so much longer: n of them add seconds/n + n*latency to the longer copy.
inline std::size_t slices_for(double seconds, double latency, std::size_t columns) noexcept {
  // More gain less than a sixteenth of the shorter copy.
  constexpr double most = 16;
  const double best = latency > 0 ? std::min(std::sqrt(seconds / latency), most) : most;
  return std::clamp<std::size_t>(static_cast<std::size_t>(best), 1,
                                 std::max<std::size_t>(columns, 1));
}

}  // namespace quadriga
