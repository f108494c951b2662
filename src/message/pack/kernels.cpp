// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/kernels.cpp: planes of units, and runs of lists.
#include "message/pack/kernels.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "message/pack/transpose.h"

namespace quadriga::message {
namespace {

// From here on a run is worth a lane of its own.
constexpr std::size_t lane_bytes = 2048;
// Below this a call of memcpy isn't worth it.
constexpr std::size_t short_bytes = 256;
// Units that are read ahead where the processor doesn't guess them, and runs of a list.
constexpr std::int64_t units_ahead = 16;
constexpr std::int64_t far_stride = 1024;
constexpr std::int64_t runs_ahead = 32;

// Bytes of runs that are read ahead, behind the nearest cache as well. From a few KB on it makes no
// difference how many, as long as a core's cache holds them.
constexpr std::int64_t bytes_ahead = 8192;

// Reads a short run ahead, into the cache behind the nearest: it isn't needed at once. Whether it
// ends in another line isn't asked: nobody could guess the answer.
void fetch(const std::byte* from, std::size_t bytes) noexcept {
  __builtin_prefetch(from, 0, 2);
  __builtin_prefetch(from + bytes - 1, 0, 2);
}

template <Way way, std::size_t size>
void move_row(std::byte* at, std::byte* packed, std::int64_t units, std::int64_t stride,
              std::size_t bytes) noexcept {
  const bool far = std::abs(stride) >= far_stride;
  for (std::int64_t unit = 0; unit < units; ++unit) {
    if (far) __builtin_prefetch(at + units_ahead * stride);
    move_unit<way, size>(at, packed, bytes);
    at += stride;
    packed += bytes;
  }
}

// Reads all lines of a run ahead: it may be too short for the processor to follow it.
void fetch_lines(const std::byte* from, std::size_t bytes) noexcept {
  for (std::size_t at = 0; at < bytes; at += cache_line) __builtin_prefetch(from + at, 0, 2);
  __builtin_prefetch(from + bytes - 1, 0, 2);
}

}  // namespace

template <Way way>
PieceMover<way>::PieceMover(std::byte* data, std::byte* packed, std::size_t segment) noexcept
    : data_(data), packed_(packed), streams_(exceeds_cache(segment)) {}

template <Way way>
void PieceMover<way>::finish() noexcept {
  if (!streams_) return;
  if (writer_.is_open()) writer_.close();
  lanes_.finish();
}

template <Way way>
void PieceMover<way>::run(std::byte* at, std::size_t bytes) noexcept {
  const CopyLane lane =
      way == Way::gather ? CopyLane{packed_, at, bytes} : CopyLane{at, packed_, bytes};
  if (streams_ && bytes >= lane_bytes) {
    if (writer_.is_open()) writer_.close();
    lanes_.add(lane);
  } else if (streams_ && way == Way::gather) {
    if (!writer_.is_open()) writer_.open(packed_);
    writer_.add(at, bytes);
  } else if (streams_ && bytes >= short_bytes) {
    // Beyond the packed bytes' end nothing is read: a line that isn't there isn't fetched.
    fetch_lines(packed_ + bytes_ahead, bytes);
    stream_bytes(lane.to, lane.from, bytes);
  } else if (bytes >= short_bytes) {
    std::memcpy(lane.to, lane.from, bytes);
  } else {
    copy_short(lane.to, lane.from, bytes);
  }
  packed_ += bytes;
}

template <Way way>
void PieceMover<way>::part(std::int64_t offset, std::int64_t bytes) noexcept {
  run(data_ + offset, static_cast<std::size_t>(bytes));
}

template <Way way>
void PieceMover<way>::plane(std::int64_t offset, const Plane& plane) noexcept {
  std::byte* at = data_ + offset;
  const auto bytes = static_cast<std::size_t>(plane.unit_bytes);
  if (bytes >= short_bytes) {
    for (std::int64_t row = 0; row < plane.rows; ++row)
      long_units(at + row * plane.row_stride, plane);
    return;
  }
  if (writer_.is_open()) writer_.close();
  with_size(plane.unit_bytes, [&]<std::size_t size>() {
    if (TransposeTiles<way, size>::suits(plane)) {
      TransposeTiles<way, size>(at, packed_, plane, streams_).move();
      packed_ += plane.rows * plane.units * plane.unit_bytes;
    } else {
      units<size>(at, plane);
    }
  });
}

template <Way way>
void PieceMover<way>::long_units(std::byte* at, const Plane& plane) noexcept {
  const auto bytes = static_cast<std::size_t>(plane.unit_bytes);
  const bool fetches = streams_ && way == Way::gather && bytes < lane_bytes;
  const std::int64_t later = std::max<std::int64_t>(1, bytes_ahead / plane.unit_bytes);
  for (std::int64_t unit = 0; unit < plane.units; ++unit) {
    if (fetches && unit + later < plane.units)
      fetch_lines(at + (unit + later) * plane.unit_stride, bytes);
    run(at + unit * plane.unit_stride, bytes);
  }
}

// Row by row. Packed bytes that go past the cache are put together in a buffer first.
template <Way way>
template <std::size_t size>
void PieceMover<way>::units(std::byte* at, const Plane& plane) noexcept {
  alignas(cache_line) std::array<std::byte, 4096> buffer;
  const auto bytes = static_cast<std::size_t>(plane.unit_bytes);
  const bool buffered = way == Way::gather && streams_;
  const auto most = static_cast<std::int64_t>(buffer.size() / bytes);
  for (std::int64_t row = 0; row < plane.rows; ++row) {
    for (std::int64_t unit = 0; unit < plane.units; unit += most) {
      const std::int64_t count = std::min(most, plane.units - unit);
      const auto moved = static_cast<std::size_t>(count) * bytes;
      std::byte* begin = at + row * plane.row_stride + unit * plane.unit_stride;
      move_row<way, size>(begin, buffered ? buffer.data() : packed_, count, plane.unit_stride,
                          bytes);
      if (buffered) stream_bytes(packed_, buffer.data(), moved);
      packed_ += moved;
    }
  }
}

template <Way way>
void PieceMover<way>::slice(std::int64_t base, const ListSlice& slice) noexcept {
  const ListedRun* const end = slice.first + slice.count;
  for (const ListedRun* each = slice.first; each != end; ++each) {
    const ListedRun* later = each + std::min<std::int64_t>(runs_ahead, end - each - 1);
    fetch(data_ + base + later->offset, static_cast<std::size_t>(later[1].packed - later->packed));
    run(data_ + base + each->offset, static_cast<std::size_t>(each[1].packed - each->packed));
  }
}

template class PieceMover<Way::gather>;
template class PieceMover<Way::scatter>;

}  // namespace quadriga::message
