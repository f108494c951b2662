// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack_lanes.h: copies long runs several at a time, past the cache where they exceed it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace quadriga::message {

/// A run to be copied.
struct Lane {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
};

inline constexpr std::size_t cache_line = 64;

/// Whether so many bytes are better written past the caches: several times what a core's own cache
/// holds, so that nobody finds them there. A reader of shorter segments does.
bool exceeds_cache(std::size_t bytes) noexcept;

/// Copies whole cache lines to aligned addresses, past the cache if the processor can.
/// Shapes:  `bytes` is a multiple of a line, `to` begins one.
void stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// Copies runs past the cache, four in turn: memory serves several pages faster than one, and what
/// is read next is already on its way. Nothing is certain to be copied before finish().
class StreamedLanes {
 public:
  void add(const Lane& lane) noexcept;
  void finish() noexcept;

 private:
  static constexpr std::size_t together = 4;
  void move_oldest() noexcept;

  std::array<Lane, 2 * together> lanes_;
  std::size_t count_ = 0;
};

}  // namespace quadriga::message
