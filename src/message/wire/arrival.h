// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/arrival.h: what a slot of another rank says, once it was found to be valid.
//
// Invariants
//   1. What another rank wrote is copied, then checked, then used: nothing of the slot is read
//      twice but a message's bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <variant>

#include "message/layout/layout.h"
#include "message/wire/claims.h"
#include "message/wire/envelope.h"

namespace quadriga::message {

/// Where a message in a device's memory lies.
struct DeviceSource {
  DeviceOffer offer;
  Layout layout;
};

/// A message from another rank, or of this rank to itself.
struct Arrival {
  Envelope envelope;
  std::shared_ptr<DeviceSource> device{};  ///< If it lies in a device's memory.
  Offer offer{};                           ///< If it is one;
  std::unique_ptr<std::byte[]> packed{};   ///< else the bytes, once they are set aside.
  std::size_t bytes = 0;                   ///< Of the message.
  int source = 0;                          ///< A rank of the world.

  bool is_offer() const noexcept {
    return envelope.kind == EnvelopeKind::offer || envelope.kind == EnvelopeKind::device_offer;
  }
  Claim claim() const noexcept { return {offer.index, offer.number}; }
};

/// What is wrong with a slot: the end of "rank 3 ...".
struct SlotFault {
  const char* text = nullptr;
};

/// Reads a slot of `capacity` bytes whose sender has so many claims; `source` is left to the
/// caller. A whole message's bytes stay in the slot, behind the envelope.
std::variant<Arrival, SlotFault> arrival_of(const std::byte* slot, std::size_t capacity,
                                            std::uint32_t claims);

}  // namespace quadriga::message
