// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack_stream.cpp: segments of a stream of packed bytes, moved piece by piece.
#include "message/pack_stream.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>

#include "message/pack_kernels.h"
#include "message/pack_walk.h"

namespace quadriga::message {
namespace {

void check_inside(std::string_view what, std::size_t offset, std::size_t segment,
                  std::size_t bytes) {
  if (offset > bytes || segment > bytes - offset)
    fail(Errc::invalid_argument, fmt::format("{}: bytes {} to {} of a stream of {}", what, offset,
                                             offset + segment, bytes));
}

template <class Kernel>
void walk(const Canonical& form, std::size_t offset, std::size_t bytes, Kernel kernel) {
  if (bytes == 0) return;
  const auto begin = static_cast<std::int64_t>(offset);
  Walk<Kernel>(form, begin, begin + static_cast<std::int64_t>(bytes), kernel);
}

}  // namespace

std::size_t Packer::pack(std::size_t offset, std::span<std::byte> into) const {
  check_inside("pack", offset, 0, bytes());
  const std::size_t segment = std::min(into.size(), bytes() - offset);
  walk(layout_.form(), offset, segment, Gather(data_, into.data(), segment));
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
    walk(layout_.form(), offset, from.size(), Scatter(data_, from.data(), from.size()));
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
    walk(form, offset + done, bytes, Gather(data_, buffer.data(), bytes));
    combine_(buffer.data(), from.data() + done, bytes / size);
    walk(form, offset + done, bytes, Scatter(data_, buffer.data(), bytes));
  }
}

}  // namespace quadriga::message
