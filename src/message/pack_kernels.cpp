// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack_kernels.cpp: planes of units, transposed ones by tiles, and runs of lists.
#include "message/pack_kernels.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "message/pack_units.h"

namespace quadriga::message {
namespace {

// From here on a run is worth what it takes to align it.
constexpr std::int64_t long_bytes = 256;
constexpr std::size_t buffer_bytes = 4096;
// Units or runs that are read ahead where the processor doesn't guess them.
constexpr std::int64_t ahead = 16;
constexpr std::int64_t far_stride = 1024;

// A row of a tile is so long that its start costs little, and all rows so short that they stay in
// the nearest cache; columns of a tile fill a page.
constexpr std::int64_t tile_row_bytes = 512;
constexpr std::int64_t tile_column_bytes = 4096;
constexpr std::int64_t most_tile_columns = 64;

// Copies what was put together in a buffer past the cache.
void stream_buffer(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const std::size_t behind = reinterpret_cast<std::uintptr_t>(to) % cache_line;
  const std::size_t head = std::min(bytes, behind ? cache_line - behind : 0);
  const std::size_t lines = (bytes - head) / cache_line * cache_line;
  std::memcpy(to, from, head);
  stream_lines(to + head, from + head, lines);
  std::memcpy(to + head + lines, from + head + lines, bytes - head - lines);
}

template <Way way, std::size_t size>
void move_unit(std::byte* at, std::byte* packed, std::size_t bytes) noexcept {
  if constexpr (way == Way::gather)
    copy_unit<size>(packed, at, bytes);
  else
    copy_unit<size>(at, packed, bytes);
}

template <Way way, std::size_t size>
void move_row(std::byte* at, std::byte* packed, std::int64_t units, std::int64_t stride,
              std::size_t bytes) noexcept {
  const bool far = std::abs(stride) >= far_stride;
  for (std::int64_t unit = 0; unit < units; ++unit) {
    if (far) __builtin_prefetch(at + ahead * stride);
    move_unit<way, size>(at, packed, bytes);
    at += stride;
    packed += bytes;
  }
}

// Where units along a row are farther apart than rows are, and rows enough to fill lines.
bool is_turned(const Plane& plane) noexcept {
  return plane.rows >= 4 && plane.units >= 4 && plane.unit_bytes <= 16 &&
         std::abs(plane.row_stride) < std::abs(plane.unit_stride);
}

}  // namespace

template <Way way>
PieceMover<way>::PieceMover(std::byte* data, std::byte* packed, std::size_t segment) noexcept
    : data_(data), packed_(packed), streams_(exceeds_cache(segment)) {}

template <Way way>
void PieceMover<way>::finish() noexcept {
  if (streams_) lanes_.finish();
}

template <Way way>
void PieceMover<way>::long_run(std::byte* at, std::size_t bytes) noexcept {
  const Lane lane = way == Way::gather ? Lane{packed_, at, bytes} : Lane{at, packed_, bytes};
  if (streams_)
    lanes_.add(lane);
  else
    std::memcpy(lane.to, lane.from, bytes);
  packed_ += bytes;
}

template <Way way>
void PieceMover<way>::part(std::int64_t offset, std::int64_t bytes) noexcept {
  if (bytes >= long_bytes) return long_run(data_ + offset, static_cast<std::size_t>(bytes));
  move_unit<way, 0>(data_ + offset, packed_, static_cast<std::size_t>(bytes));
  packed_ += bytes;
}

template <Way way>
void PieceMover<way>::plane(std::int64_t offset, const Plane& plane) noexcept {
  std::byte* at = data_ + offset;
  if (plane.unit_bytes >= long_bytes) {
    for (std::int64_t row = 0; row < plane.rows; ++row) {
      for (std::int64_t unit = 0; unit < plane.units; ++unit)
        long_run(at + row * plane.row_stride + unit * plane.unit_stride,
                 static_cast<std::size_t>(plane.unit_bytes));
    }
  } else {
    with_size(plane.unit_bytes, [&]<std::size_t size>() {
      is_turned(plane) ? tiles<size>(at, plane) : units<size>(at, plane);
    });
  }
}

// Row by row. Packed bytes that go past the cache are put together in a buffer first.
template <Way way>
template <std::size_t size>
void PieceMover<way>::units(std::byte* at, const Plane& plane) noexcept {
  alignas(cache_line) std::array<std::byte, buffer_bytes> buffer;
  const auto bytes = static_cast<std::size_t>(plane.unit_bytes);
  const bool buffered = way == Way::gather && streams_;
  const auto most = static_cast<std::int64_t>(buffer_bytes / bytes);
  for (std::int64_t row = 0; row < plane.rows; ++row) {
    for (std::int64_t unit = 0; unit < plane.units; unit += most) {
      const std::int64_t count = std::min(most, plane.units - unit);
      const auto moved = static_cast<std::size_t>(count) * bytes;
      std::byte* begin = at + row * plane.row_stride + unit * plane.unit_stride;
      move_row<way, size>(begin, buffered ? buffer.data() : packed_, count, plane.unit_stride,
                          bytes);
      if (buffered) stream_buffer(packed_, buffer.data(), moved);
      packed_ += moved;
    }
  }
}

// A transpose: units of neighbouring rows share lines, so that a tile of rows is moved at once, by
// way of a buffer that holds a piece of each.
template <Way way>
template <std::size_t size>
void PieceMover<way>::tiles(std::byte* at, const Plane& plane) noexcept {
  alignas(cache_line) std::array<std::byte, tile_row_bytes * most_tile_columns> buffer;
  const std::int64_t bytes = plane.unit_bytes, row_bytes = plane.units * bytes;
  const std::int64_t in_row = tile_row_bytes / bytes;
  const std::int64_t columns =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(cache_line) / bytes, 4, most_tile_columns);
  const std::int64_t rows_together =
      std::max(columns, tile_column_bytes / bytes / columns * columns);
  const auto tile = [&](std::int64_t row, std::int64_t rows, std::int64_t unit,
                        std::int64_t count) {
    std::byte* begin = at + row * plane.row_stride + unit * plane.unit_stride;
    std::byte* packed = packed_ + row * row_bytes + unit * bytes;
    const auto line = static_cast<std::size_t>(count * bytes);
    for (std::int64_t i = 0; way == Way::scatter && i < rows; ++i)
      std::memcpy(buffer.data() + i * tile_row_bytes, packed + i * row_bytes, line);
    for (std::int64_t j = 0; j < count; ++j) {
      for (std::int64_t i = 0; i < rows; ++i)
        move_unit<way, size>(begin + j * plane.unit_stride + i * plane.row_stride,
                             buffer.data() + i * tile_row_bytes + j * bytes,
                             static_cast<std::size_t>(bytes));
    }
    for (std::int64_t i = 0; way == Way::gather && i < rows; ++i) {
      const std::byte* from = buffer.data() + i * tile_row_bytes;
      if (streams_)
        stream_buffer(packed + i * row_bytes, from, line);
      else
        std::memcpy(packed + i * row_bytes, from, line);
    }
  };
  for (std::int64_t outer = 0; outer < plane.rows; outer += rows_together) {
    const std::int64_t last = std::min(plane.rows, outer + rows_together);
    for (std::int64_t unit = 0; unit < plane.units; unit += in_row) {
      for (std::int64_t row = outer; row < last; row += columns)
        tile(row, std::min(columns, last - row), unit, std::min(in_row, plane.units - unit));
    }
  }
  packed_ += plane.rows * row_bytes;
}

template <Way way>
void PieceMover<way>::slice(std::int64_t base, const ListSlice& slice) noexcept {
  alignas(cache_line) std::array<std::byte, buffer_bytes> buffer;
  const bool buffered = way == Way::gather && streams_;
  std::size_t held = 0;
  const auto flush = [&] {
    stream_buffer(packed_, buffer.data(), held);
    packed_ += held;
    held = 0;
  };
  const ListedRun* const end = slice.first + slice.count;
  for (const ListedRun* run = slice.first; run != end; ++run) {
    std::byte* at = data_ + base + run->offset;
    const auto bytes = static_cast<std::size_t>(run[1].packed - run->packed);
    const ListedRun& later = run[std::min<std::int64_t>(ahead, end - run - 1)];
    __builtin_prefetch(data_ + base + later.offset);
    if (bytes > cache_line / 2) __builtin_prefetch(data_ + base + later.offset + bytes);
    if (held + bytes > buffer_bytes || (held && bytes >= long_bytes)) flush();
    if (bytes >= long_bytes) {
      long_run(at, bytes);
    } else if (buffered) {
      copy_short(buffer.data() + held, at, bytes);
      held += bytes;
    } else {
      move_unit<way, 0>(at, packed_, bytes);
      packed_ += bytes;
    }
  }
  if (held) flush();
}

template class PieceMover<Way::gather>;
template class PieceMover<Way::scatter>;

}  // namespace quadriga::message
