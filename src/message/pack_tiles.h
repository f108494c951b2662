// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack_tiles.h: transposes of small units, tile by tile.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "message/pack_lanes.h"
#include "message/pack_units.h"
#include "message/pack_walk.h"

namespace quadriga::message {

enum class Way : std::uint8_t { gather, scatter };

/// Moves a unit of constant size, or of `bytes` where that is 0.
template <Way way, std::size_t size>
inline void move_unit(std::byte* at, std::byte* packed, std::size_t bytes) noexcept {
  if constexpr (way == Way::gather)
    copy_unit<size>(packed, at, bytes);
  else
    copy_unit<size>(at, packed, bytes);
}

/// A plane whose units along a row are farther apart than its rows are. Units of neighbouring rows
/// share cache lines, so a tile of rows is moved at once, by way of a buffer that holds a piece of
/// each. A tile's rows are so long that their starts cost little, and so short that their pages are
/// few; strips of tiles are so wide that what is read ahead is mostly used.
template <Way way, std::size_t size>
class TransposeTiles {
 public:
  static bool suits(const Plane& plane) noexcept {
    return size <= most_bytes && plane.unit_bytes <= most_bytes && plane.rows >= columns &&
           plane.units >= 4 && std::abs(plane.row_stride) < std::abs(plane.unit_stride);
  }

  TransposeTiles(std::byte* at, std::byte* packed, const Plane& plane, bool streams) noexcept
      : at_(at),
        packed_(packed),
        plane_(plane),
        // A piece that shares its lines with its neighbours is better put together in the cache.
        streams_(streams && plane.units * plane.unit_bytes % cache_line == 0) {}

  void move() noexcept {
    const std::int64_t bytes = plane_.unit_bytes;
    const std::int64_t in_row = row_bytes / bytes;
    const std::int64_t strip = std::max(columns, strip_bytes / bytes / columns * columns);
    // The first ones are shorter, so that others begin with lines where all rows can.
    const std::int64_t first_unit = in_row - behind_line(packed_);
    for (std::int64_t outer = 0, last = 0; outer < plane_.rows; outer = last) {
      last = std::min(plane_.rows, outer + strip - (outer ? 0 : behind_line(at_)));
      for (std::int64_t unit = 0, next = first_unit; unit < plane_.units;
           unit = next, next += in_row)
        for_columns(outer, last, unit, std::min(next, plane_.units) - unit);
    }
  }

 private:
  static constexpr std::int64_t most_bytes = 16;
  static constexpr std::int64_t row_bytes = 256;
  static constexpr std::int64_t strip_bytes = 32768;
  static constexpr std::int64_t columns =
      size == 0 ? 4 : std::clamp<std::int64_t>(cache_line / (size ? size : 1), 4, 32);

  // Units from the line's begin to here.
  std::int64_t behind_line(const std::byte* here) const noexcept {
    const auto behind = reinterpret_cast<std::uintptr_t>(here) % cache_line;
    return static_cast<std::int64_t>(behind) / plane_.unit_bytes % columns;
  }

  void for_columns(std::int64_t row, std::int64_t last, std::int64_t unit,
                   std::int64_t count) noexcept {
    // The strip's first columns end with a line.
    const std::int64_t first = row ? columns : columns - behind_line(at_);
    for (std::int64_t width = first; row < last; row += width, width = columns) {
      width = std::min(width, last - row);
      tile(row, width, unit, count);
    }
  }

  void tile(std::int64_t row, std::int64_t rows, std::int64_t unit, std::int64_t count) noexcept {
    std::byte* at = at_ + row * plane_.row_stride + unit * plane_.unit_stride;
    const std::int64_t bytes = plane_.unit_bytes, packed_row = plane_.units * bytes;
    std::byte* packed = packed_ + row * packed_row + unit * bytes;
    const auto length = static_cast<std::size_t>(count * bytes);
    for (std::int64_t i = 0; way == Way::scatter && i < rows; ++i)
      std::memcpy(buffer_.data() + i * row_bytes, packed + i * packed_row, length);
    const std::int64_t next = columns * plane_.row_stride;
    for (std::int64_t j = 0; j < count; ++j, at += plane_.unit_stride) {
      // Neighbouring units lie in pages of their own, where the processor reads nothing ahead.
      __builtin_prefetch(at + next);
      if (size && rows == columns && plane_.row_stride == size)
        whole_line(at, buffer_.data() + j * bytes);
      else
        across(at, buffer_.data() + j * bytes, rows);
    }
    for (std::int64_t i = 0; way == Way::gather && i < rows; ++i) {
      const std::byte* from = buffer_.data() + i * row_bytes;
      if (streams_)
        stream_bytes(packed + i * packed_row, from, length);
      else
        std::memcpy(packed + i * packed_row, from, length);
    }
  }

  // One unit of each of the tile's rows, where all are known when this is compiled.
  static void whole_line(std::byte* at, std::byte* buffer) noexcept {
    for (std::int64_t i = 0; i < columns; ++i)
      move_unit<way, size>(at + i * static_cast<std::int64_t>(size), buffer + i * row_bytes, size);
  }

  void across(std::byte* at, std::byte* buffer, std::int64_t rows) const noexcept {
    for (std::int64_t i = 0; i < rows; ++i)
      move_unit<way, size>(at + i * plane_.row_stride, buffer + i * row_bytes,
                           static_cast<std::size_t>(plane_.unit_bytes));
  }

  std::byte* at_;
  std::byte* packed_;
  const Plane& plane_;
  bool streams_;
  alignas(cache_line) std::array<std::byte, static_cast<std::size_t>(row_bytes* columns)> buffer_;
};

}  // namespace quadriga::message
