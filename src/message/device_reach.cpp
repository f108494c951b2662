// SPDX-License-Identifier: BSD-3-Clause
// src/message/device_reach.cpp: opening senders' memory of devices, and copiers from there.
#include "message/device_reach.h"

#include <quadriga/error.h>

#include <memory>
#include <utility>

#include "message/device_moves.h"
#include "message/ports.h"

namespace quadriga::message {
namespace {

bool is_for(const DevicePort& port, HandleKind kind) noexcept {
  return kind != HandleKind::none && port.is_cuda() != (kind == HandleKind::memory_file);
}

}  // namespace

bool DeviceReach::reach(MessageTransfer& transfer, const Arrival& arrival) {
  PeerLink& link = links_[static_cast<std::size_t>(arrival.source)];
  try {
    return link.process < 0 ? reach_own(link, transfer, *arrival.device)
                            : reach_other(link, transfer, arrival);
  } catch (const Error& error) {
    if (error.code() == Errc::device_lost) throw;
    const bool no_files = error.code() == Errc::cancelled;
    if (error.code() != Errc::invalid_argument && error.code() != Errc::too_large)
      note_path(link, no_files ? PairPath::no_files : PairPath::not_opened, error.what());
  }
  return false;
}

bool DeviceReach::reach_other(PeerLink& link, MessageTransfer& transfer, const Arrival& arrival) {
  const DeviceOffer& offer = arrival.device->offer;
  const auto known = static_cast<PairPath>(link.path_in->load(std::memory_order_acquire));
  const MessageBuffer& place = transfer.place;
  if (offer.handle.kind == HandleKind::none || known == PairPath::no_files ||
      known == PairPath::not_opened)
    return false;
  const std::shared_ptr<DevicePort> port =
      place.on_device() ? place.port : ports::find(offer.handle.kind);
  if (!port || !is_for(*port, offer.handle.kind)) return false;
  DevicePlace from;
  from.port = port;
  from.device = place.on_device() ? place.device : DeviceId{0};
  from.layout = arrival.device->layout;
  const auto reached = link.memory.reach(offer, port, from.device, link.process);
  from.data = reached.first - (offer.layout_bytes ? offer.first : 0);
  from.keep = reached.keep;
  from.space = space_reached_by(*port, offer.handle.device, from.device);
  if (place.on_device())
    transfer.copier = std::make_shared<DeviceCopier>(from, place_on_device(place), arrival.bytes);
  else
    transfer.reader = std::make_shared<DeviceReader>(from, arrival.bytes);
  note_path(link, PairPath::mapped, {});
  return true;
}

// Between ranks of one process: their addresses are its own.
bool DeviceReach::reach_own(PeerLink& link, MessageTransfer& transfer, const DeviceSource& source) {
  const std::shared_ptr<DevicePort> owner = ports::find(source.offer.port);
  const MessageBuffer& place = transfer.place;
  if (!owner || (place.on_device() && place.port->is_cuda() != owner->is_cuda())) return false;
  // Kernels don't reach another GPU's memory within a process, copies do.
  const bool is_apart = place.on_device() && owner->is_cuda() && owner != place.port;
  if (is_apart && (source.offer.layout_bytes != 0 || place.flat() == nullptr)) return false;
  DevicePlace from;
  from.port = place.on_device() ? place.port : owner;
  from.device = place.on_device() ? place.device : source.offer.device;
  from.layout = source.layout;
  from.data = reinterpret_cast<std::byte*>(source.offer.data) +
              (source.offer.layout_bytes ? 0 : source.offer.first);
  from.space = space_reached_by(*from.port, source.offer.device, from.device);
  // The sender can't withdraw it any more.
  if (!link.claims.change(transfer.claim, ClaimState::claimed, ClaimState::held)) return false;
  try {
    if (place.on_device())
      transfer.copier =
          std::make_shared<DeviceCopier>(from, place_on_device(place), transfer.expected);
    else
      transfer.reader = std::make_shared<DeviceReader>(from, transfer.expected);
  } catch (...) {
    link.claims.change(transfer.claim, ClaimState::held, ClaimState::claimed);
    throw;
  }
  return true;
}

void DeviceReach::note_path(PeerLink& link, PairPath path, const std::string& why) {
  std::uint32_t before = static_cast<std::uint32_t>(PairPath::unknown);
  if (!link.path_in->compare_exchange_strong(before, static_cast<std::uint32_t>(path))) {
    // An allocation that was opened before this one wasn't doesn't make the pair's path.
    if (path == PairPath::mapped || before != static_cast<std::uint32_t>(PairPath::mapped)) return;
    link.path_in->store(static_cast<std::uint32_t>(path), std::memory_order_release);
  }
  if (path != PairPath::mapped)
    ends_.note(LogLevel::warning, "messages from memory of rank " + std::to_string(link.rank) +
                                      "'s devices pass through the host: " + why);
}

}  // namespace quadriga::message
