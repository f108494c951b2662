// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/transpose.h: transposes of small units, tile by tile.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "message/pack/copy_few.h"
#include "message/pack/lanes.h"
#include "message/pack/walk.h"

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
      : at_(at), packed_(packed), plane_(plane), streams_(streams && way == Way::gather) {}

  void move() noexcept {
    const std::int64_t in_row = row_bytes / plane_.unit_bytes;
    // Where all rows begin at the same place of a line, so do all tiles but the first.
    const std::int64_t first = in_row - (rows_alike() ? behind_line(packed_) : 0);
    const std::int64_t strip =
        std::max(columns, strip_bytes / plane_.unit_bytes / columns * columns);
    for (std::int64_t outer = 0, last = 0; outer < plane_.rows; outer = last) {
      last = std::min(plane_.rows, outer + strip - (outer ? 0 : behind_line(at_) % columns));
      for (std::int64_t unit = 0, next = first; unit < plane_.units; unit = next, next += in_row)
        for_columns(outer, last, unit, std::min(plane_.units, next));
    }
  }

 private:
  static constexpr std::int64_t most_bytes = 16;
  static constexpr std::int64_t row_bytes = 256;
  static constexpr std::int64_t strip_bytes = 32768;
  static constexpr std::int64_t columns =
      size == 0 ? 4 : std::clamp<std::int64_t>(cache_line / (size ? size : 1), 4, 32);

  // Rows of the buffer have room for a line before the tile.
  static constexpr std::int64_t buffer_row = row_bytes + static_cast<std::int64_t>(cache_line);

  bool rows_alike() const noexcept {
    return plane_.units * plane_.unit_bytes % static_cast<std::int64_t>(cache_line) == 0;
  }

  // Units from the line's begin to here.
  std::int64_t behind_line(const std::byte* here) const noexcept {
    const auto behind = reinterpret_cast<std::uintptr_t>(here) % cache_line;
    return static_cast<std::int64_t>(behind) / plane_.unit_bytes;
  }

  void for_columns(std::int64_t row, std::int64_t last, std::int64_t unit,
                   std::int64_t next) noexcept {
    // The strip's first columns end with a line, so that all that follow do where rows allow it.
    const std::int64_t first = row ? columns : columns - behind_line(at_) % columns;
    for (std::int64_t width = first; row < last; row += width, width = columns) {
      width = std::min(width, last - row);
      tile(row, width, unit, next);
    }
  }

  // Where a row's part of a tile is cut that begins or ends at `unit`: past the cache, lines are
  // written whole, so what is left of one belongs to the next tile, which reads it again.
  std::int64_t cut(std::int64_t row, std::int64_t unit) const noexcept {
    if (!streams_ || unit == 0 || unit == plane_.units) return unit;
    return std::max<std::int64_t>(0, unit - behind_line(packed(row, unit)));
  }

  std::byte* packed(std::int64_t row, std::int64_t unit) const noexcept {
    return packed_ + (row * plane_.units + unit) * plane_.unit_bytes;
  }

  void tile(std::int64_t row, std::int64_t rows, std::int64_t unit, std::int64_t next) noexcept {
    const std::int64_t bytes = plane_.unit_bytes;
    const std::int64_t in_line = static_cast<std::int64_t>(cache_line) / bytes;
    const std::int64_t lead = streams_ && !rows_alike() ? std::min(unit, in_line) : 0;
    const std::int64_t first = unit - lead;
    for (std::int64_t i = 0; way == Way::scatter && i < rows; ++i)
      std::memcpy(buffer_.data() + i * buffer_row, packed(row + i, first),
                  static_cast<std::size_t>((next - first) * bytes));
    across(at_ + row * plane_.row_stride + first * plane_.unit_stride, rows, next - first);
    for (std::int64_t i = 0; way == Way::gather && i < rows; ++i) {
      const std::int64_t begin = cut(row + i, unit), end = cut(row + i, next);
      const std::byte* from = buffer_.data() + i * buffer_row + (begin - first) * bytes;
      const auto length = static_cast<std::size_t>((end - begin) * bytes);
      if (streams_)
        stream_bytes(packed(row + i, begin), from, length);
      else
        std::memcpy(packed(row + i, begin), from, length);
    }
  }

  // Between elements and the buffer.
  void across(std::byte* at, std::int64_t rows, std::int64_t units) noexcept {
    const std::int64_t bytes = plane_.unit_bytes;
    // The end of the next tile's columns: this one reads the line where they begin.
    const std::int64_t next = (2 * columns - 1) * plane_.row_stride + bytes - 1;
    for (std::int64_t j = 0; j < units; ++j, at += plane_.unit_stride) {
      // Neighbouring units lie in pages of their own, where the processor reads nothing ahead.
      __builtin_prefetch(at + next);
      std::byte* buffer = buffer_.data() + j * bytes;
      if (size && rows == columns && plane_.row_stride == size) {
        whole_line(at, buffer);
        continue;
      }
      for (std::int64_t i = 0; i < rows; ++i)
        move_unit<way, size>(at + i * plane_.row_stride, buffer + i * buffer_row,
                             static_cast<std::size_t>(bytes));
    }
  }

  // One unit of each of the tile's rows, where all are known when this is compiled.
  static void whole_line(std::byte* at, std::byte* buffer) noexcept {
    for (std::int64_t i = 0; i < columns; ++i)
      move_unit<way, size>(at + i * static_cast<std::int64_t>(size), buffer + i * buffer_row, size);
  }

  std::byte* at_;
  std::byte* packed_;
  const Plane& plane_;
  bool streams_;
  alignas(cache_line) std::array<std::byte, static_cast<std::size_t>(buffer_row* columns)> buffer_;
};

}  // namespace quadriga::message
