// SPDX-License-Identifier: BSD-3-Clause
// src/device/pitch.h: the leading dimension of tiles in the engine's own memory.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

namespace quadriga {

/// The width of a column, rounded up to a multiple of the memory's pitch alignment, a power of two;
/// of narrow columns to a smaller one, so that padding is never more than an eighth of them.
inline std::size_t padded_pitch(std::size_t width_bytes, std::size_t columns,
                                std::size_t alignment) noexcept {
  constexpr std::size_t least_share = 8;
  if (columns < 2 || width_bytes < least_share) return width_bytes;
  const std::size_t unit = std::min(alignment, std::bit_floor(width_bytes / least_share));
  return (width_bytes + unit - 1) & ~(unit - 1);
}

}  // namespace quadriga
