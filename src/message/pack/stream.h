// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/stream.h: a message as a stream of packed bytes, read and written in segments.
#pragma once

#include <cstddef>
#include <span>

#include "message/layout/layout.h"
#include "message/pack/reduce.h"

namespace quadriga::message {

/// Reads the elements of a layout as a stream of packed bytes, from any offset of it on: what a
/// sender passes on in segments. Several threads may use it at once.
class Packer {
 public:
  /// `data` is the address that the layout's offsets count from; it must outlive this.
  Packer(Layout layout, const void* data) noexcept
      : layout_(std::move(layout)), data_(static_cast<const std::byte*>(data)) {}

  std::size_t bytes() const noexcept { return static_cast<std::size_t>(layout_.bytes()); }
  const Layout& layout() const noexcept { return layout_; }
  /// Writes the stream's bytes from `offset` on, as many as there are and `into` holds; says how
  /// many. A segment may begin and end anywhere, within an element too.
  /// Errors: invalid_argument if `offset` is beyond the stream's end.
  std::size_t pack(std::size_t offset, std::span<std::byte> into) const;

 private:
  Layout layout_;
  const std::byte* data_;
};

/// Writes a stream of packed bytes to the elements of a layout, segment by segment in any order:
/// what a receiver does with them. Segments that don't meet may be written by several threads.
class Unpacker {
 public:
  /// Errors: invalid_argument if the layout's elements overlap.
  Unpacker(Layout layout, void* data);
  /// As above, but each element becomes what `combine` makes of it and the one that arrives. A
  /// segment must begin and end with an element then.
  /// Errors: invalid_argument if the elements are of several types, or overlap.
  Unpacker(Layout layout, void* data, Combine combine);

  std::size_t bytes() const noexcept { return static_cast<std::size_t>(layout_.bytes()); }
  const Layout& layout() const noexcept { return layout_; }
  /// Errors: invalid_argument if `offset` plus the segment is beyond the stream's end.
  void unpack(std::size_t offset, std::span<const std::byte> from) const;

 private:
  void combine(std::size_t offset, std::span<const std::byte> from) const;

  Layout layout_;
  std::byte* data_;
  Combine combine_;
};

}  // namespace quadriga::message
