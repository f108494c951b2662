// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/lanes.h: copies past the cache: long runs side by side, short ones line by line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "message/pack/copy_few.h"

namespace quadriga::message {

/// A run to be copied.
struct CopyLane {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
};

inline constexpr std::size_t cache_line = 64;

/// Whether so many bytes are better written past the caches: several times what a core's own cache
/// holds, so that nobody finds them there. A reader of shorter segments does.
bool exceeds_cache(std::size_t bytes) noexcept;

/// Copies bytes past the cache if the processor can, all but what shares a line with others.
void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// Writes runs one after the other past the cache: what they share lines by is put together first,
/// so that each line is written once and whole.
class LineWriter {
 public:
  /// Runs below this size are gathered in a buffer, as long as several lines.
  static constexpr std::size_t short_bytes = 4 * cache_line;

  bool is_open() const noexcept { return line_ != nullptr; }
  void open(std::byte* to) noexcept;
  void add(const std::byte* from, std::size_t bytes) noexcept {
    if (held_ + short_bytes > buffer_bytes) write_lines();
    if (bytes >= short_bytes) return add_lines(from, bytes);
    copy_short(buffer_.data() + held_, from, bytes);
    held_ += bytes;
  }
  /// Writes what is left of the last line.
  void close() noexcept;

 private:
  static constexpr std::size_t buffer_bytes = 4096;
  void write_lines() noexcept;
  void add_lines(const std::byte* from, std::size_t bytes) noexcept;

  alignas(cache_line) std::array<std::byte, buffer_bytes> buffer_;
  std::byte* line_ = nullptr;  // Where the buffer's first byte goes: where a line begins.
  std::size_t first_ = 0;      // Bytes of the first line that aren't ours.
  std::size_t held_ = 0;
};

/// Copies runs past the cache, four in turn: memory serves several pages faster than one, and what
/// is read next is already on its way. Nothing is certain to be copied before finish().
class StreamedLanes {
 public:
  void add(const CopyLane& lane) noexcept;
  void finish() noexcept;

 private:
  static constexpr std::size_t together = 4;
  void move_oldest() noexcept;

  std::array<CopyLane, 2 * together> lanes_;
  std::size_t count_ = 0;
};

}  // namespace quadriga::message
