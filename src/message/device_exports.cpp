// SPDX-License-Identifier: BSD-3-Clause
// src/message/device_exports.cpp: offers of memory of devices, and notices that it is gone.
#include "message/device_exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "message/layout/code.h"

namespace quadriga::message {

std::size_t DeviceExports::describe(const MessageBuffer& place, const PeerLink& link,
                                    std::span<std::byte> into) {
  DeviceOffer offer;
  const auto [first, end] = place.layout.bounds();
  offer.first = first;
  offer.span = static_cast<std::uint64_t>(end - first);
  offer.data = reinterpret_cast<std::uintptr_t>(place.data);
  offer.port = place.port->number();
  offer.device = place.device;
  std::vector<std::byte> code;
  if (!place.flat()) code = encoded(place.layout);
  const bool fits = sizeof offer + code.size() <= into.size();
  const auto found = static_cast<PairPath>(link.path_out->load(std::memory_order_acquire));
  const bool is_staged = found != PairPath::unknown && found != PairPath::mapped;
  if (is_staged && link.process >= 0) warn(text_of(found));
  if (!fits) {
    warn("a layout is too long to be told: its messages are staged through the host");
    code.clear();
    offer.port = 0;
  } else if (!is_staged && link.process >= 0) {
    const std::byte* const lies = place.data + first;
    MemoryExport made = place.port->memory().export_memory(place.device, lies);
    if (made.refusal.empty() && offer.span > made.handle.bytes - made.offset)
      made = MemoryExport::refused("it lies in several allocations");
    if (!made.refusal.empty()) {
      warn("staged: memory of a device can't be shared: " + made.refusal);
    } else {
      offer.handle = made.handle;
      offer.offset = made.offset;
      offer.base = reinterpret_cast<std::uintptr_t>(lies) - made.offset;
      note(place, offer, link);
    }
  }
  offer.layout_bytes = static_cast<std::uint32_t>(code.size());
  std::memcpy(into.data(), &offer, sizeof offer);
  std::ranges::copy(code, into.begin() + sizeof offer);
  return sizeof offer + code.size();
}

void DeviceExports::note(const MessageBuffer& place, const DeviceOffer& offer,
                         const PeerLink& link) {
  const auto rank = static_cast<std::size_t>(link.rank);
  const auto is_it = [&](const Known& each) {
    return each.id == offer.handle.id && each.base == offer.base && each.port.lock() == place.port;
  };
  auto found = std::ranges::find_if(known_, is_it);
  if (found == known_.end()) {
    look_for_gone();
    known_.push_back(
        {place.port, place.device, offer.base, offer.handle.id, std::vector<bool>(ranks_)});
    found = std::prev(known_.end());
  }
  found->told[rank] = true;
}

void DeviceExports::look_for_gone() {
  std::erase_if(known_, [&](const Known& each) {
    const auto port = each.port.lock();
    const bool is_there =
        port && port->memory().allocation_at(each.device,
                                             reinterpret_cast<const void*>(each.base)) == each.id;
    if (is_there) return false;
    for (std::size_t rank = 0; rank < each.told.size(); ++rank)
      if (each.told[rank]) news_.push_back({rank, each.id});
    return true;
  });
}

void DeviceExports::tell(PeerLinks& links) {
  std::erase_if(news_, [&](const News& each) {
    PeerLink& link = links[each.rank];
    if (link.presence != Presence::here) return true;
    std::byte* const at = link.messages_out.reserve();
    if (at == nullptr) return false;
    Envelope envelope;
    envelope.kind = EnvelopeKind::forget;
    envelope.bytes = sizeof each.id;
    std::memcpy(at, &envelope, sizeof envelope);
    std::memcpy(at + sizeof envelope, &each.id, sizeof each.id);
    link.messages_out.publish();
    link.bell.ring();
    return true;
  });
}

void DeviceExports::warn(const std::string& why) {
  if (std::ranges::find(warned_, why) != warned_.end()) return;
  warned_.push_back(why);
  log(LogLevel::warning, "messages: " + why + "; they pass through the host's memory");
}

}  // namespace quadriga::message
