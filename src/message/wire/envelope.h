// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/envelope.h: what is written at the head of slots.
#pragma once

#include <cstdint>

#include "device/memory_handle.h"
#include "message/layout/element.h"

namespace quadriga::message {

enum class EnvelopeKind : std::uint8_t {
  whole = 1,  ///< The message's packed bytes follow.
  offer = 2,  ///< An Offer follows: the message is large.
  abort = 3,  ///< The context's transfers end; why follows.
  /// An Offer, a DeviceOffer and the code of the sender's layout follow, unless its elements lie
  /// side by side: the message lies in a device's memory.
  device_offer = 4,
  forget = 5,  ///< The number of an allocation follows: it isn't the sender's any more.
};

/// At the head of a message's slot. With the turn before it and 24 bytes behind it, one line.
struct Envelope {
  static constexpr std::uint8_t uniform = 0x80;

  std::uint64_t context = 0;
  std::uint64_t count = 0;  ///< Elements of the message.
  std::uint64_t hash = 0;   ///< Of their types.
  std::int32_t tag = 0;
  std::uint16_t bytes = 0;  ///< That follow in the slot.
  EnvelopeKind kind = EnvelopeKind::whole;
  std::uint8_t type = 0;  ///< Of the elements, with `uniform` if all are of one type.

  void set_type(const ElementSignature& elements) noexcept {
    type = static_cast<std::uint8_t>(static_cast<unsigned>(elements.type()) |
                                     (elements.uniform() ? uniform : 0U));
  }
};
static_assert(sizeof(Envelope) == 32);

/// A large message: where it is, and the word by which it is claimed.
struct Offer {
  std::uint64_t bytes = 0;
  std::uint64_t address = 0;  ///< In the sender's memory; 0: it doesn't lie side by side.
  std::uint32_t index = 0;    ///< Of the claim,
  std::uint32_t number = 0;   ///< and its use.
};
static_assert(sizeof(Offer) == 24);

/// Where a message in a device's memory lies, behind its Offer, whose address is 0.
struct DeviceOffer {
  MemoryHandle handle;       ///< Of kind none if nobody else can open it.
  std::uint64_t base = 0;    ///< Where the allocation begins, in the sender's addresses.
  std::uint64_t offset = 0;  ///< In the allocation, of the message's first byte there.
  std::uint64_t span = 0;    ///< Bytes from the first to one past the last.
  std::int64_t first = 0;    ///< Offset of the first byte, as the layout counts.
  std::uint64_t data = 0;    ///< What the layout's offsets count from; for ranks of its process,
  std::uint64_t port = 0;    ///< who have ports in common.
  std::uint32_t layout_bytes = 0;
  std::uint16_t device = 0;
  std::uint16_t unused = 0;
};

/// At the head of a piece of a large message.
struct PieceHead {
  std::uint32_t index = 0;
  std::uint32_t number = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

inline ElementSignature signature_of(const Envelope& envelope) noexcept {
  return {envelope.count, envelope.hash, (envelope.type & Envelope::uniform) != 0,
          static_cast<ElementType>(envelope.type & ~Envelope::uniform)};
}

}  // namespace quadriga::message
