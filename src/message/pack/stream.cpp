// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/stream.cpp: segments of a stream of packed bytes, moved piece by piece.
#include "message/pack/stream.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>

#include "message/pack/kernels.h"
#include "message/pack/walk.h"

namespace quadriga::message {
namespace {

void check_inside(std::string_view what, std::size_t offset, std::size_t segment,
                  std::size_t bytes) {
  if (offset > bytes || segment > bytes - offset)
    fail(Errc::invalid_argument, fmt::format("{}: bytes {} to {} of a stream of {}", what, offset,
                                             offset + segment, bytes));
}

template <Way way>
void move(const Canonical& form, std::byte* data, std::size_t offset, std::byte* packed,
          std::size_t bytes) {
  if (bytes == 0) return;
  PieceMover<way> mover(data, packed, bytes);
  const auto begin = static_cast<std::int64_t>(offset);
  Walk<PieceMover<way>>(form, begin, begin + static_cast<std::int64_t>(bytes), mover);
  mover.finish();
}

// What is gathered from, or scattered from, is only read.
void gather(const Canonical& form, const std::byte* data, std::size_t offset, std::byte* packed,
            std::size_t bytes) {
  move<Way::gather>(form, const_cast<std::byte*>(data), offset, packed, bytes);
}

void scatter(const Canonical& form, std::byte* data, std::size_t offset, const std::byte* packed,
             std::size_t bytes) {
  move<Way::scatter>(form, data, offset, const_cast<std::byte*>(packed), bytes);
}

}  // namespace

std::size_t Packer::pack(std::size_t offset, std::span<std::byte> into) const {
  check_inside("pack", offset, 0, bytes());
  const std::size_t segment = std::min(into.size(), bytes() - offset);
  gather(layout_.form(), data_, offset, into.data(), segment);
  return segment;
}

Unpacker::Unpacker(Layout layout, void* data)
    : layout_(std::move(layout)), data_(static_cast<std::byte*>(data)) {
  layout_.check_receives();
}

Unpacker::Unpacker(Layout layout, void* data, Combine combine) : Unpacker(std::move(layout), data) {
  combine_ = std::move(combine);
  if (!layout_.elements().uniform())
    fail(Errc::invalid_argument,
         fmt::format("unpack: a reduction takes elements of one type, not {}", layout_.text()));
}

void Unpacker::unpack(std::size_t offset, std::span<const std::byte> from) const {
  check_inside("unpack", offset, from.size(), bytes());
  if (combine_)
    combine(offset, from);
  else
    scatter(layout_.form(), data_, offset, from.data(), from.size());
}

// By way of a buffer that stays in the cache: elements are gathered, combined side by side, and
// scattered.
void Unpacker::combine(std::size_t offset, std::span<const std::byte> from) const {
  constexpr std::size_t buffer_bytes = 16384;
  const std::size_t size = size_of(layout_.elements().type());
  if (offset % size || from.size() % size)
    fail(Errc::invalid_argument,
         fmt::format("unpack: a reduction's segment of {} B at byte {} cuts elements of {} B",
                     from.size(), offset, size));
  alignas(64) std::array<std::byte, buffer_bytes> buffer;
  const Canonical& form = layout_.form();
  for (std::size_t done = 0; done < from.size(); done += buffer_bytes) {
    const std::size_t bytes = std::min(buffer_bytes, from.size() - done);
    gather(form, data_, offset + done, buffer.data(), bytes);
    combine_(buffer.data(), from.data() + done, bytes / size);
    scatter(form, data_, offset + done, buffer.data(), bytes);
  }
}

}  // namespace quadriga::message
