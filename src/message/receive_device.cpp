// SPDX-License-Identifier: BSD-3-Clause
// src/message/receive_device.cpp: messages from and to memory of devices: which way they take, and
// what devices still do for them.
#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "message/device_moves.h"
#include "message/layout_code.h"
#include "message/pack_stream.h"
#include "message/receive_side.h"
#include "message/stream_order.h"

namespace quadriga::message {
namespace {

bool is_for(const DevicePort& port, HandleKind kind) noexcept {
  return kind != HandleKind::none && port.is_cuda() != (kind == HandleKind::memory_file);
}

}  // namespace

// Nothing in it is believed that will be used.
bool ReceiveSide::take_device_offer(PeerLink& link, Arrival& arrival, const std::byte* content) {
  auto source = std::make_shared<DeviceSource>();
  const std::size_t bytes = arrival.envelope.bytes - sizeof(Offer);
  DeviceOffer& offer = source->offer;
  if (bytes < sizeof offer) return false;
  std::memcpy(&offer, content, sizeof offer);
  if (offer.layout_bytes != bytes - sizeof offer) return false;
  const MemoryHandle& handle = offer.handle;
  if (handle.kind > HandleKind::cuda_file ||
      (handle.kind != HandleKind::none &&
       (offer.offset > handle.bytes || offer.span > handle.bytes - offer.offset)))
    return false;
  const ElementSignature elements = signature_of(arrival.envelope);
  if (offer.layout_bytes == 0) {
    if (handle.kind != HandleKind::none && offer.span != arrival.offer.bytes) return false;
    source->layout =
        Layout::contiguous(static_cast<std::int64_t>(arrival.offer.bytes), ElementType::bytes);
  } else {
    try {
      source->layout = decoded({content + sizeof offer, offer.layout_bytes});
    } catch (const Error&) {
      return false;
    }
    const auto [first, end] = source->layout.bounds();
    if (static_cast<std::uint64_t>(source->layout.bytes()) != arrival.offer.bytes ||
        first != offer.first || static_cast<std::uint64_t>(end - first) != offer.span ||
        !(source->layout.elements() == elements))
      return false;
  }
  static_cast<void>(link);
  arrival.device = std::move(source);
  return true;
}

// A message of a slot, or of this rank itself, which is of any size and waits for nobody.
void ReceiveSide::deliver_to_device(const TransferPtr& transfer,
                                    std::span<const std::byte> packed) {
  if (packed.empty()) return end(*transfer);
  transfer->expected = packed.size();
  try {
    if (packed.size() > DevicePort::block_bytes) {
      write_all(transfer->place, packed);
      return end(*transfer);
    }
    writer_of(*transfer).write(packed);
  } catch (const std::exception&) {
    return end(*transfer, std::current_exception());
  }
  moving_.push_back(transfer);
}

// Straight from the sender's memory where this process reaches it, else in pieces.
void ReceiveSide::deliver_device(const TransferPtr& transfer, const Arrival& arrival) {
  PeerLink& link = links_[static_cast<std::size_t>(arrival.source)];
  try {
    const bool reached =
        link.process < 0 ? reach_own(*transfer, *arrival.device) : reach(*transfer, arrival);
    if (reached) return moving_.push_back(transfer);
  } catch (const Error& error) {
    if (error.code() == Errc::device_lost) {
      fail_move(*transfer);
      return;
    }
    const bool no_files = error.code() == Errc::cancelled;
    // What was wrong with one allocation says nothing of others.
    if (error.code() != Errc::invalid_argument && error.code() != Errc::too_large)
      note_path(link, no_files ? PairPath::no_files : PairPath::not_opened, error.what());
  }
  want_pieces(transfer);
}

bool ReceiveSide::reach(MessageTransfer& transfer, const Arrival& arrival) {
  PeerLink& link = links_[static_cast<std::size_t>(arrival.source)];
  const DeviceOffer& offer = arrival.device->offer;
  const auto known = static_cast<PairPath>(link.path_in->load(std::memory_order_acquire));
  const MessageBuffer& place = transfer.place;
  if (offer.handle.kind == HandleKind::none || known == PairPath::no_files ||
      known == PairPath::not_opened)
    return false;
  const std::shared_ptr<DevicePort> port =
      place.on_device() ? place.port : DevicePort::find(offer.handle.kind);
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
bool ReceiveSide::reach_own(MessageTransfer& transfer, const DeviceSource& source) {
  const std::shared_ptr<DevicePort> owner = DevicePort::find(source.offer.port);
  const MessageBuffer& place = transfer.place;
  PeerLink& link = links_[static_cast<std::size_t>(transfer.sender)];
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

// The first result of a pair stays, and both ranks see it.
void ReceiveSide::note_path(PeerLink& link, PairPath path, const std::string& why) {
  std::uint32_t before = static_cast<std::uint32_t>(PairPath::unknown);
  if (!link.path_in->compare_exchange_strong(before, static_cast<std::uint32_t>(path))) {
    // An allocation that was opened before this one wasn't doesn't make the pair's path.
    if (path == PairPath::mapped || before != static_cast<std::uint32_t>(PairPath::mapped)) return;
    link.path_in->store(static_cast<std::uint32_t>(path), std::memory_order_release);
  }
  if (path != PairPath::mapped)
    log(LogLevel::warning,
        fmt::format("messages from memory of rank {}'s devices pass through the host: {}",
                    link.rank, why));
}

bool ReceiveSide::has_moves() const noexcept {
  const auto writes = [](const TransferPtr& each) { return each->writer != nullptr; };
  return !moving_.empty() || std::ranges::any_of(reading_, writes) ||
         std::ranges::any_of(piecing_, writes);
}

bool ReceiveSide::has_led() const noexcept {
  return std::ranges::any_of(moving_, [](const TransferPtr& each) { return each->is_led; });
}

void ReceiveSide::start_move(TransferPtr transfer) {
  transfer->sender = rank_;
  moving_.push_back(std::move(transfer));
}

bool ReceiveSide::advance_moves() {
  bool moved = false;
  for (std::size_t i = 0; i < moving_.size();) {
    const TransferPtr transfer = moving_[i];
    try {
      moved = move_on(*transfer) || moved;
    } catch (const std::exception&) {
      fail_move(*transfer);
    }
    if (!transfer->done.load(std::memory_order_relaxed)) {
      ++i;
      continue;
    }
    moving_.erase(moving_.begin() + static_cast<std::ptrdiff_t>(i));
    moved = true;
  }
  return moved;
}

// Whether anything moved; ends the transfer once all has.
bool ReceiveSide::move_on(MessageTransfer& transfer) {
  if (transfer.writer) {
    if (!transfer.writer->has_ended()) return false;
    end(transfer);
    return true;
  }
  const PeerLink& link = links_[static_cast<std::size_t>(transfer.sender)];
  const bool is_message = transfer.claim.number != 0;
  const ClaimState state = is_message ? link.claims.state(transfer.claim) : ClaimState::held;
  if (state != ClaimState::claimed && state != ClaimState::held) {
    end_withdrawn(transfer);
    return true;
  }
  bool moved = false;
  if (transfer.copier) {
    moved = transfer.copier->advance();
    if (!transfer.copier->has_ended()) return moved;
  } else {
    const std::span<const std::byte> some = transfer.reader->at(transfer.moved);
    if (some.empty()) return false;
    if (std::byte* const flat = transfer.place.flat())
      std::memcpy(flat + transfer.moved, some.data(), some.size());
    else
      Unpacker(transfer.place.layout, transfer.place.data).unpack(transfer.moved, some);
    transfer.moved += some.size();
    if (transfer.moved < transfer.expected) return true;
  }
  transfer.stop_moving();
  if (end_claim(transfer))
    end(transfer);
  else
    end_withdrawn(transfer);
  return true;
}

// From here on the sender can't take the message back.
void ReceiveSide::lead(MessageTransfer& transfer) {
  const auto lane = transfer.copier ? DeviceMove::own_lane : DeviceWriter::own_lane;
  const PeerLink& link = links_[static_cast<std::size_t>(transfer.sender)];
  if (transfer.copier && link.claims.state(transfer.claim) != ClaimState::held &&
      !link.claims.change(transfer.claim, ClaimState::claimed, ClaimState::held))
    return;
  transfer.is_led = transfer.order->lead(lane);
}

// False if the sender has taken the message back.
bool ReceiveSide::end_claim(MessageTransfer& transfer) {
  if (transfer.claim.number == 0) return true;  // No message of another rank.
  PeerLink& link = links_[static_cast<std::size_t>(transfer.sender)];
  const bool ended = link.claims.change(transfer.claim, ClaimState::held, ClaimState::done) ||
                     link.claims.change(transfer.claim, ClaimState::claimed, ClaimState::done);
  link.bell.ring();
  return ended;
}

// By a fault of a device: the sender has done nothing wrong.
void ReceiveSide::fail_move(MessageTransfer& transfer) {
  const std::exception_ptr error = std::current_exception();
  transfer.stop_moving();
  end_claim(transfer);
  end(transfer, error);
}

DeviceWriter& ReceiveSide::writer_of(MessageTransfer& transfer) {
  if (!transfer.writer)
    transfer.writer =
        std::make_shared<DeviceWriter>(place_on_device(transfer.place), transfer.expected);
  return *transfer.writer;
}

// False if there is no room for it yet.
bool ReceiveSide::write_piece(MessageTransfer& transfer, std::span<const std::byte> piece) {
  if (!transfer.place.on_device()) {
    if (std::byte* const flat = transfer.place.flat())
      std::memcpy(flat + transfer.moved, piece.data(), piece.size());
    else
      Unpacker(transfer.place.layout, transfer.place.data).unpack(transfer.moved, piece);
  } else {
    try {
      if (!writer_of(transfer).write(piece)) return false;
    } catch (const std::exception&) {
      PeerLink& link = links_[static_cast<std::size_t>(transfer.sender)];
      link.claims.change(transfer.claim, ClaimState::wanted, ClaimState::discarded);
      link.bell.ring();
      end(transfer, std::current_exception());
      return true;
    }
  }
  transfer.moved += piece.size();
  return true;
}

}  // namespace quadriga::message
