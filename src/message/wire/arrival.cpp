// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/arrival.cpp: reads slots that another rank wrote, of which nothing is believed.
#include "message/wire/arrival.h"

#include <quadriga/error.h>

#include <cstring>

#include "message/layout/code.h"

namespace quadriga::message {
namespace {

constexpr std::uint64_t largest_message = std::uint64_t{1} << 62;

// Null if the offer of memory in a device isn't valid.
std::shared_ptr<DeviceSource> device_source(const Arrival& arrival, const std::byte* content) {
  auto source = std::make_shared<DeviceSource>();
  const std::size_t bytes = arrival.envelope.bytes - sizeof(Offer);
  DeviceOffer& offer = source->offer;
  if (bytes < sizeof offer) return nullptr;
  std::memcpy(&offer, content, sizeof offer);
  if (offer.layout_bytes != bytes - sizeof offer) return nullptr;
  const MemoryHandle& handle = offer.handle;
  if (handle.kind > HandleKind::cuda_file ||
      (handle.kind != HandleKind::none &&
       (handle.bytes >= largest_message || offer.base + handle.bytes < offer.base ||
        offer.offset > handle.bytes || offer.span > handle.bytes - offer.offset)))
    return nullptr;
  if (offer.layout_bytes == 0) {
    if (handle.kind != HandleKind::none && offer.span != arrival.offer.bytes) return nullptr;
    source->layout =
        Layout::contiguous(static_cast<std::int64_t>(arrival.offer.bytes), ElementType::bytes);
    return source;
  }
  try {
    source->layout = decoded({content + sizeof offer, offer.layout_bytes});
  } catch (const Error&) {
    return nullptr;
  }
  const auto [first, end] = source->layout.bounds();
  const bool is_right = static_cast<std::uint64_t>(source->layout.bytes()) == arrival.offer.bytes &&
                        first == offer.first &&
                        static_cast<std::uint64_t>(end - first) == offer.span &&
                        source->layout.elements() == signature_of(arrival.envelope);
  return is_right ? source : nullptr;
}

// Null, or what is wrong.
const char* read_offer(Arrival& arrival, const std::byte* content, std::size_t capacity,
                       std::uint32_t claims) {
  const Envelope& envelope = arrival.envelope;
  const bool on_device = envelope.kind == EnvelopeKind::device_offer;
  if (envelope.bytes < sizeof(Offer) || (envelope.bytes > sizeof(Offer) && !on_device))
    return "sent an offer of a wrong size";
  std::memcpy(&arrival.offer, content, sizeof(Offer));
  const Offer& offer = arrival.offer;
  if (offer.index >= claims || offer.bytes == 0 ||
      (!on_device && offer.bytes + sizeof envelope <= capacity) || offer.bytes >= largest_message)
    return "sent an offer that isn't valid";
  arrival.bytes = offer.bytes;
  if (!on_device) return nullptr;
  arrival.device = device_source(arrival, content + sizeof(Offer));
  return arrival.device ? nullptr : "sent an offer of memory that isn't valid";
}

}  // namespace

std::variant<Arrival, SlotFault> arrival_of(const std::byte* slot, std::size_t capacity,
                                            std::uint32_t claims) {
  Arrival arrival;
  Envelope& envelope = arrival.envelope;
  std::memcpy(&envelope, slot, sizeof envelope);
  if (envelope.bytes > capacity - sizeof envelope || envelope.tag < 0 ||
      (envelope.type & ~Envelope::uniform) >= element_types)
    return SlotFault{"sent an envelope that isn't valid"};
  arrival.bytes = envelope.bytes;
  switch (envelope.kind) {
    case EnvelopeKind::whole:
    case EnvelopeKind::abort:
      return arrival;
    case EnvelopeKind::forget:
      if (envelope.bytes != sizeof(std::uint64_t))
        return SlotFault{"sent a notice of a wrong size"};
      return arrival;
    case EnvelopeKind::offer:
    case EnvelopeKind::device_offer:
      if (const char* const why = read_offer(arrival, slot + sizeof envelope, capacity, claims))
        return SlotFault{why};
      return arrival;
  }
  return SlotFault{"sent an envelope of no known kind"};
}

}  // namespace quadriga::message
