// SPDX-License-Identifier: BSD-3-Clause
// src/message/packed_place.h: elements of a collective as bytes side by side.
#pragma once

#include <cstdint>

#include "message/collective.h"

namespace quadriga::message {

/// Bytes side by side that a place's elements travel as: the place's own, or a packed copy.
class PackedPlace {
 public:
  /// Packs what isn't side by side, if it is read, and what lies where `apart_from` is written. The
  /// copy is where the place is.
  PackedPlace(Collective& collective, const MessageBuffer& place, bool is_read,
              const MessageBuffer* apart_from = nullptr)
      : PackedPlace(collective, place, is_read, apart_from, home_of(place)) {}
  /// Also what isn't in memory of `home`, where the copy is.
  PackedPlace(Collective& collective, const MessageBuffer& place, bool is_read,
              const MessageBuffer* apart_from, const Home& home);
  std::size_t bytes() const noexcept { return place_.bytes(); }
  MessageBuffer at(std::int64_t offset, std::int64_t bytes) const;
  /// All of it: of a device, as it lies, if there is no copy.
  MessageBuffer whole() const;
  /// Unpacks what was written, if there is a copy.
  void write_back() const;
  /// A part that travels in one: on a device it stays as it lies, unless it is `apart_from`.
  static PackedPlace part(Collective& collective, const MessageBuffer& place, bool is_read,
                          const MessageBuffer* apart_from = nullptr);

 private:
  PackedPlace(Collective& collective, const MessageBuffer& place)
      : collective_(&collective), place_(place) {}

  Collective* collective_;
  MessageBuffer place_;
  Room copy_;
};

/// Where a schedule's input and output are.
Collective::PlaceOf places_of(const PackedPlace& input, const PackedPlace& output);

}  // namespace quadriga::message
