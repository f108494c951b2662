// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/kernels.h: moves pieces of a layout from or to packed bytes, on one core.
#pragma once

#include <cstddef>
#include <cstdint>

#include "message/pack/lanes.h"
#include "message/pack/transpose.h"
#include "message/pack/walk.h"

namespace quadriga::message {

/// Kernel of a Walk: from where a layout's elements are to packed bytes, or back.
///
/// Long runs are copied by memcpy, short ones without a call. Where the segment exceeds the cache,
/// it is written past it: long runs side by side, packed bytes of shorter ones line by line.
/// Nothing is certain to be there before finish().
template <Way way>
class PieceMover {
 public:
  /// What is only read isn't written, though its pointer could.
  PieceMover(std::byte* data, std::byte* packed, std::size_t segment) noexcept;
  void plane(std::int64_t offset, const Plane& plane) noexcept;
  void part(std::int64_t offset, std::int64_t bytes) noexcept;
  void slice(std::int64_t base, const ListSlice& slice) noexcept;
  void finish() noexcept;

 private:
  void run(std::byte* at, std::size_t bytes) noexcept;
  void long_units(std::byte* at, const Plane& plane) noexcept;
  template <std::size_t size>
  void units(std::byte* at, const Plane& plane) noexcept;

  std::byte* data_;
  std::byte* packed_;
  bool streams_;
  StreamedLanes lanes_;
  LineWriter writer_;  // Of packed bytes.
};

extern template class PieceMover<Way::gather>;
extern template class PieceMover<Way::scatter>;

}  // namespace quadriga::message
