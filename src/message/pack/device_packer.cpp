// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/device_packer.cpp: checks of parts, and packing by the host in a device's place.
#include "message/pack/device_packer.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "message/pack/device_plan.h"
#include "message/pack/stream.h"

namespace quadriga::message {
namespace {

class HostPacker final : public DevicePacker {
 public:
  void pack(std::span<const PackPart> parts, const PackQueue&) override {
    for (const PackPart& part : parts) checked_bytes(part);
    for (const PackPart& part : parts) {
      const std::size_t bytes = checked_bytes(part);
      if (bytes == 0) continue;
      Packer(part.layout, part.data)
          .pack(part.offset, {static_cast<std::byte*>(part.packed), bytes});
      count(bytes);
    }
  }

  void unpack(std::span<const PackPart> parts, const PackQueue&) override {
    for (const PackPart& part : parts) check_unpacks(part);
    for (const PackPart& part : parts) write(Unpacker(part.layout, part.data), part);
  }

  void unpack_reduce(std::span<const PackPart> parts, ReduceOperation operation,
                     const PackQueue&) override {
    for (const PackPart& part : parts) check_reduces(part, operation);
    for (const PackPart& part : parts) {
      if (part.layout.bytes() == 0) continue;
      Combine combine = combine_of(operation, part.layout.elements().type());
      write(Unpacker(part.layout, part.data, std::move(combine)), part);
    }
  }

  // By way of a few bytes aside: `into` may be either of the others.
  void combine(const CombinePart& part, ReduceOperation operation, const PackQueue&) override {
    check_combines(part, operation);
    const Combine with = combine_of(operation, part.type);
    const std::size_t size = size_of(part.type);
    alignas(16) std::array<std::byte, 16384> some;
    for (std::size_t at = 0; at < part.bytes; at += some.size()) {
      const std::size_t bytes = std::min(some.size(), part.bytes - at);
      std::memcpy(some.data(), static_cast<const std::byte*>(part.from) + at, bytes);
      with(some.data(), static_cast<const std::byte*>(part.with) + at, bytes / size);
      std::memcpy(static_cast<std::byte*>(part.into) + at, some.data(), bytes);
    }
    if (part.bytes > 0) count(part.bytes);
  }

  void move(const MovePart& part, const PackQueue&) override {
    check_moves(part);
    std::array<std::byte, 65536> some;
    const Packer from(part.from_layout, part.from);
    const Unpacker to(part.to_layout, part.to);
    for (std::size_t moved = 0; moved < part.bytes;) {
      const std::size_t bytes = std::min(some.size(), part.bytes - moved);
      from.pack(part.offset + moved, {some.data(), bytes});
      to.unpack(part.offset + moved, {some.data(), bytes});
      moved += bytes;
    }
    if (part.bytes > 0) count(part.bytes);
  }

  PackCounters counters() const override {
    const std::scoped_lock lock(mutex_);
    return counters_;
  }

 private:
  void write(const Unpacker& unpacker, const PackPart& part) {
    const std::size_t bytes = checked_bytes(part);
    if (bytes == 0) return;
    unpacker.unpack(part.offset, {static_cast<const std::byte*>(part.packed), bytes});
    count(bytes);
  }

  void count(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    ++counters_.launches;
    counters_.bytes += bytes;
  }

  mutable std::mutex mutex_;
  PackCounters counters_;
};

}  // namespace

std::size_t checked_bytes(const PackPart& part) {
  const auto all = static_cast<std::size_t>(part.layout.bytes());
  if (part.offset <= all) {
    if (part.bytes == PackPart::whole) return all - part.offset;
    if (part.bytes <= all - part.offset) return part.bytes;
  }
  fail(Errc::invalid_argument,
       fmt::format("pack: {} B from byte {} on of a stream of {}", part.bytes, part.offset, all));
}

void check_unpacks(const PackPart& part) {
  checked_bytes(part);
  part.layout.check_receives();
}

void check_reduces(const PackPart& part, ReduceOperation operation) {
  check_unpacks(part);
  const ElementSignature& elements = part.layout.elements();
  if (!elements.uniform())
    fail(Errc::invalid_argument,
         fmt::format("unpack: a reduction takes elements of one type, not {}", part.layout.text()));
  if (elements.count() == 0) return;
  combine_of(operation, elements.type());
  const std::size_t size = size_of(elements.type()), bytes = checked_bytes(part);
  if (part.offset % size || bytes % size)
    fail(Errc::invalid_argument,
         fmt::format("unpack: a reduction's segment of {} B at byte {} cuts elements of {} B",
                     bytes, part.offset, size));
}

void check_combines(const CombinePart& part, ReduceOperation operation) {
  combine_of(operation, part.type);
  if (part.bytes % size_of(part.type) != 0)
    fail(Errc::invalid_argument,
         fmt::format("combine: {} B cut elements of {} B", part.bytes, size_of(part.type)));
}

void check_moves(const MovePart& part) {
  checked_bytes({part.from_layout, part.from, nullptr, part.offset, part.bytes});
  check_unpacks({part.to_layout, part.to, nullptr, part.offset, part.bytes});
}

bool moves_directly(const MovePart& part) {
  const auto begin = static_cast<std::int64_t>(part.offset);
  return move_plan_of(part.from_layout.form(), static_cast<std::byte*>(part.from),
                      part.to_layout.form(), static_cast<std::byte*>(part.to), begin,
                      begin + static_cast<std::int64_t>(part.bytes))
      .has_value();
}

std::unique_ptr<DevicePacker> DevicePacker::on_host() { return std::make_unique<HostPacker>(); }

}  // namespace quadriga::message
