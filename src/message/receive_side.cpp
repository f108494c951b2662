// SPDX-License-Identifier: BSD-3-Clause
// src/message/receive_side.cpp: taking messages from rings, reading large ones, unpacking.
#include "message/receive_side.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "message/device_moves.h"
#include "message/pack_stream.h"

namespace quadriga::message {
namespace {

// Read at once with the lock held.
constexpr std::size_t read_bytes = std::size_t{1} << 20;
// What isn't unpacked in place passes through a buffer that stays in the cache.
constexpr std::size_t bounce_bytes = std::size_t{256} << 10;
constexpr std::uint64_t largest_message = std::uint64_t{1} << 62;

void unpack_from(const MessageBuffer& place, std::size_t offset, std::span<const std::byte> from) {
  if (from.empty()) return;
  if (std::byte* const flat = place.flat())
    std::memcpy(flat + offset, from.data(), from.size());
  else
    Unpacker(place.layout, place.data).unpack(offset, from);
}

bool is_of(const MessageTransfer& transfer, int sender, const Claim& claim) {
  return transfer.sender == sender && transfer.claim == claim;
}

}  // namespace

bool ReceiveSide::is_large(const MessageTransfer& transfer) noexcept {
  return transfer.place.bytes() > 4096 || transfer.place.on_device();
}

void ReceiveSide::end(MessageTransfer& transfer, std::exception_ptr error) noexcept {
  if (transfer.keep) let_go_.push_back(std::move(transfer.keep));
  transfer.finish(std::move(error));
  ended_ = true;
}

bool ReceiveSide::fault(PeerLink& link, const char* what) {
  link.reason = what;
  link.is_believed = false;
  fault_ = true;
  return false;
}

std::optional<TransferPtr> ReceiveSide::take_receive(const Address& address) {
  auto taken = matching_.take_receive(address);
  if (taken && is_large(**taken)) --large_;
  return taken;
}

void ReceiveSide::start(TransferPtr transfer) {
  const Address wanted{transfer->context, transfer->peer, transfer->tag};
  while (auto found = matching_.take_message(wanted)) {
    const Arrival& arrival = *found->arrival;
    if (arrival.is_offer()) {
      if (!claim(arrival)) continue;  // It was withdrawn.
      return deliver_large(transfer, arrival);
    }
    PeerLink& link = links_[static_cast<std::size_t>(arrival.source)];
    link.unexpected_bytes -= std::min(link.unexpected_bytes, arrival.bytes);
    return deliver(transfer, arrival, arrival.packed.get());
  }
  if (is_large(*transfer)) ++large_;
  matching_.add_receive(wanted, std::move(transfer));
}

void ReceiveSide::send_to_self(const MessageBuffer& place, int tag, std::uint64_t context) {
  Unexpected message{std::make_shared<Arrival>()};
  Arrival& arrival = *message.arrival;
  const ElementSignature& elements = place.layout.elements();
  arrival.envelope.context = context;
  arrival.envelope.tag = tag;
  arrival.envelope.count = elements.count();
  arrival.envelope.hash = elements.hash();
  arrival.envelope.set_type(elements);
  arrival.bytes = place.bytes();
  arrival.source = rank_;
  // A copy in any case: sender's and receiver's elements may overlap.
  arrival.packed =
      std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(1, arrival.bytes));
  if (place.on_device())
    read_all(place, {arrival.packed.get(), arrival.bytes});
  else
    Packer(place.layout, place.data).pack(0, {arrival.packed.get(), arrival.bytes});
  const Address address{context, rank_, tag};
  if (const auto receive = take_receive(address))
    return deliver(*receive, arrival, arrival.packed.get());
  matching_.add_message(address, std::move(message));
}

std::optional<MessageStatus> ReceiveSide::find(const Address& wanted,
                                               std::span<const Address> before,
                                               const Group& group) const {
  const auto is_there = [&](const Unexpected& message) {  // Else it was withdrawn.
    const Arrival& each = *message.arrival;
    const Claims& claims = links_[static_cast<std::size_t>(each.source)].claims;
    return !each.is_offer() ||
           claims.state({each.offer.index, each.offer.number}) == ClaimState::offered;
  };
  const auto* const found = matching_.find_message(wanted, before, is_there);
  if (found == nullptr) return std::nullopt;
  const Arrival& arrival = *found->second.arrival;
  return MessageStatus{group.rank_of(arrival.source), arrival.envelope.tag, arrival.bytes};
}

bool ReceiveSide::advance(int peer, bool all) {
  PeerLink& link = links_[static_cast<std::size_t>(peer)];
  bool moved = false;
  if (!link.is_believed) return end_pieces_of_gone(link, peer);
  // So many at a time that other ranks have their turn.
  const auto turns = static_cast<int>(link.messages_in.slots());
  for (int turn = 0; turn < turns; ++turn) {
    const std::byte* const at = link.messages_in.front();
    if (at == nullptr || !take(link, peer, at, all)) break;
    if (link.messages_in.pop()) link.bell.ring();
    moved = true;
  }
  if (piecing_.empty() && !all) return moved;
  for (int turn = 0; turn < turns; ++turn) {
    const std::byte* const at = link.pieces_in.front();
    if (at == nullptr) break;
    if (!take_piece(link, peer, at)) return moved;
    if (link.pieces_in.pop()) link.bell.ring();
    moved = true;
  }
  if (link.presence != Presence::here) moved = end_pieces_of_gone(link, peer) || moved;
  return look_for_abandoned(link, peer) || moved;
}

bool ReceiveSide::take(PeerLink& link, int peer, const std::byte* at, bool all) {
  Arrival arrival;
  Envelope& envelope = arrival.envelope;
  std::memcpy(&envelope, at, sizeof envelope);
  const std::byte* const content = at + sizeof envelope;
  if (envelope.bytes > link.messages_in.capacity() - sizeof envelope || envelope.tag < 0 ||
      (envelope.type & ~Envelope::uniform) >= element_types)
    return fault(link, "sent an envelope that isn't valid");
  arrival.bytes = envelope.bytes;
  arrival.source = peer;
  const Address address{envelope.context, peer, envelope.tag};
  if (arrival.is_offer()) {
    const bool on_device = envelope.kind == EnvelopeKind::device_offer;
    if (envelope.bytes < sizeof(Offer) || (envelope.bytes > sizeof(Offer) && !on_device))
      return fault(link, "sent an offer of a wrong size");
    std::memcpy(&arrival.offer, content, sizeof(Offer));
    if (arrival.offer.index >= claims_ || arrival.offer.bytes == 0 ||
        (!on_device && arrival.offer.bytes + sizeof envelope <= link.messages_in.capacity()) ||
        arrival.offer.bytes >= largest_message)
      return fault(link, "sent an offer that isn't valid");
    if (on_device && !take_device_offer(link, arrival, content + sizeof(Offer)))
      return fault(link, "sent an offer of memory that isn't valid");
    arrival.bytes = arrival.offer.bytes;
    if (matching_.accepts(address)) {
      if (claim(arrival)) deliver_large(*take_receive(address), arrival);
      return true;
    }
    return set_aside_offer(link, address, std::move(arrival));
  }
  if (envelope.kind == EnvelopeKind::abort) {
    ContextAbort why{envelope.context, {}, envelope.tag - 1};
    why.text.assign(reinterpret_cast<const char*>(content), envelope.bytes);
    if (!aborts_.emplace(envelope.context, why).second) return true;
    if (++link.aborts > most_aborts) return fault(link, "aborted more contexts than are kept");
    new_aborts_.push_back(envelope.context);
    return true;
  }
  if (envelope.kind == EnvelopeKind::forget) {
    std::uint64_t id = 0;
    if (envelope.bytes != sizeof id) return fault(link, "sent a notice of a wrong size");
    std::memcpy(&id, content, sizeof id);
    link.memory.forget(id);
    return true;
  }
  if (envelope.kind != EnvelopeKind::whole) return fault(link, "sent an envelope of no known kind");
  if (const auto receive = take_receive(address)) {
    deliver(*receive, arrival, content);
    return true;
  }
  if (link.unexpected_bytes >= most_unexpected && !all && !is_awaited(peer)) return false;
  // An empty message takes memory too.
  link.unexpected_bytes += arrival.bytes + sizeof(Arrival);
  arrival.packed =
      std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(1, arrival.bytes));
  std::memcpy(arrival.packed.get(), content, arrival.bytes);
  matching_.add_message(address, {std::make_shared<Arrival>(std::move(arrival))});
  return true;
}

// Withdrawn ones are dropped whenever there are so many that half of them must be.
bool ReceiveSide::set_aside_offer(PeerLink& link, const Address& address, Arrival&& arrival) {
  if (++link.offers > 2 * std::size_t{claims_per_pair}) {
    link.offers = 1;
    matching_.remove_messages([&](const Address& from, const Unexpected& message) {
      const Arrival& each = *message.arrival;
      if (from.source != address.source || !each.is_offer()) return false;
      const Claim claim{each.offer.index, each.offer.number};
      const bool is_over = link.claims.state(claim) != ClaimState::offered;
      if (!is_over) ++link.offers;
      return is_over;
    });
    if (link.offers > std::size_t{claims_per_pair} + 1)
      return fault(link, "offered more messages than it may");
  }
  matching_.add_message(address, {std::make_shared<Arrival>(std::move(arrival))});
  return true;
}

bool ReceiveSide::claim(const Arrival& arrival) {
  PeerLink& link = links_[static_cast<std::size_t>(arrival.source)];
  const Claim claim{arrival.offer.index, arrival.offer.number};
  // A rank that has left has withdrawn all; of a lost one the receive will be told.
  if (link.presence == Presence::lost) return link.claims.state(claim) == ClaimState::offered;
  return link.claims.change(claim, ClaimState::offered, ClaimState::claimed);
}

// Whether the message's elements are those that the receive expects, or fewer; else it ends.
bool ReceiveSide::fits(MessageTransfer& transfer, const Arrival& arrival) {
  const ElementSignature sent = signature_of(arrival.envelope);
  const ElementSignature& expected = transfer.place.layout.elements();
  transfer.status = {transfer.group->rank_of(arrival.source), arrival.envelope.tag, arrival.bytes};
  const auto refuse = [&](const std::string& why) {
    const std::string from = fmt::format("{} from rank {}, tag {}", name(transfer.operation),
                                         transfer.status.source, transfer.status.tag);
    end(transfer, std::make_exception_ptr(Error(Errc::invalid_argument, from + ": " + why)));
    return false;
  };
  if (arrival.bytes > transfer.place.bytes())
    return refuse(fmt::format("the message has {} bytes ({}), the receive's array only {} ({})",
                              arrival.bytes, sent.text(), transfer.place.bytes(), expected.text()));
  if (sent.count() == 0 && arrival.bytes == 0) return true;
  // Structs, or single elements, as large as the receive's are.
  const auto whole = [&](const ElementSignature& elements) {
    return elements.count() / expected.period().count();
  };
  const bool same =
      sent == expected || (expected.begins_with(sent) &&
                           arrival.bytes == transfer.place.bytes() / whole(expected) * whole(sent));
  return same || refuse(fmt::format("the message's elements are {}, the receive's {}", sent.text(),
                                    expected.text()));
}

void ReceiveSide::deliver(const TransferPtr& transfer, const Arrival& arrival,
                          const std::byte* packed) {
  if (!fits(*transfer, arrival)) return;
  if (transfer->place.on_device()) return deliver_to_device(transfer, {packed, arrival.bytes});
  unpack_from(transfer->place, 0, {packed, arrival.bytes});
  end(*transfer);
}

void ReceiveSide::deliver_large(const TransferPtr& transfer, const Arrival& arrival) {
  PeerLink& link = links_[static_cast<std::size_t>(arrival.source)];
  transfer->sender = arrival.source;
  transfer->claim = {arrival.offer.index, arrival.offer.number};
  transfer->address = arrival.offer.address;
  transfer->expected = arrival.bytes;
  transfer->moved = 0;
  if (link.presence != Presence::here)
    return end(*transfer, loss_of(*transfer, arrival.source, link));
  if (!fits(*transfer, arrival)) {
    // A sender whose message is too long has done nothing wrong: it ends.
    const bool is_longer = arrival.bytes > transfer->place.bytes();
    link.claims.change(transfer->claim, ClaimState::claimed,
                       is_longer ? ClaimState::done : ClaimState::refused);
    link.bell.ring();
    return;
  }
  if (arrival.device)
    deliver_device(transfer, arrival);
  else if (link.can_read && link.pid > 0 && arrival.offer.address != 0)
    reading_.push_back(transfer);
  else
    want_pieces(transfer);
}

void ReceiveSide::want_pieces(const TransferPtr& transfer) {
  PeerLink& link = links_[static_cast<std::size_t>(transfer->sender)];
  transfer->moved = 0;
  transfer->stop_moving();
  if (!link.claims.change(transfer->claim, ClaimState::claimed, ClaimState::wanted))
    return end_withdrawn(*transfer);
  link.bell.ring();
  piecing_.push_back(transfer);
}

bool ReceiveSide::advance_reads() {
  bool moved = !moving_.empty() && advance_moves();
  // The oldest first; the others have their turn at the next look.
  std::size_t left = read_bytes;
  for (std::size_t i = 0; i < reading_.size() && left > 0;) {
    const TransferPtr transfer = reading_[i];
    try {
      moved = read_on(*transfer, left) || moved;
    } catch (const std::exception&) {
      fail_move(*transfer);
    }
    PeerLink& link = links_[static_cast<std::size_t>(transfer->sender)];
    const bool ended = transfer->done.load(std::memory_order_relaxed);
    const bool is_read = !ended && transfer->moved == transfer->expected;
    if (!ended && !is_read && link.can_read) {
      ++i;
      continue;
    }
    remove(reading_, i);
    moved = true;
    if (is_read)
      moving_.push_back(transfer);
    else if (!ended)
      want_pieces(transfer);
  }
  return moved;
}

bool ReceiveSide::read_on(MessageTransfer& transfer, std::size_t& most) {
  PeerLink& link = links_[static_cast<std::size_t>(transfer.sender)];
  if (link.claims.state(transfer.claim) != ClaimState::claimed) {
    end_withdrawn(transfer);
    return true;
  }
  const bool on_device = transfer.place.on_device();
  std::byte* const flat = on_device ? nullptr : transfer.place.flat();
  std::span<std::byte> room;
  if (on_device && (room = writer_of(transfer).room()).empty()) return false;
  const std::size_t left = transfer.expected - transfer.moved;
  const std::size_t bytes = std::min({left, most,
                                      on_device ? room.size()
                                      : flat    ? read_bytes
                                                : bounce_bytes});
  if (!flat && !on_device) bounce_.resize(bounce_bytes);
  // A sender that sleeps wakes while the last of it is read.
  if (transfer.moved > 0 && bytes == left) link.bell.ring();
  const iovec here{on_device ? room.data() : flat ? flat + transfer.moved : bounce_.data(), bytes};
  const iovec there{reinterpret_cast<void*>(transfer.address + transfer.moved), bytes};
  const ssize_t got = process_vm_readv(link.pid, &here, 1, &there, 1, 0);
  if (got <= 0) {
    // A process that has just ended is noticed by its descriptor.
    if (got < 0 && errno == ESRCH && link.process >= 0) return false;
    // One that gave up may have freed the memory: that says nothing of the next message.
    if (link.claims.state(transfer.claim) == ClaimState::claimed)
      link.can_read = false;
    else
      end_withdrawn(transfer);
    return true;
  }
  const auto count = static_cast<std::size_t>(got);
  most -= count;
  if (on_device)
    transfer.writer->wrote(count);
  else if (!flat)
    unpack_from(transfer.place, transfer.moved, {bounce_.data(), count});
  transfer.moved += count;
  if (transfer.moved < transfer.expected) return true;
  // The process number may be another's, if this one ended meanwhile: then nothing was received.
  if (!process_lives(link.process)) {
    transfer.moved = 0;
    transfer.stop_moving();
    return false;
  }
  if (!link.claims.change(transfer.claim, ClaimState::claimed, ClaimState::done)) {
    end_withdrawn(transfer);
    return true;
  }
  link.bell.ring();
  if (!on_device) end(transfer);
  return true;
}

bool ReceiveSide::take_piece(PeerLink& link, int peer, const std::byte* at) {
  PieceHead head;
  std::memcpy(&head, at, sizeof head);
  if (head.bytes == 0 || head.bytes > link.pieces_in.capacity() - sizeof head)
    return fault(link, "sent a piece of a wrong size");
  const Claim claim{head.index, head.number};
  for (std::size_t i = 0; i < piecing_.size(); ++i) {
    const TransferPtr transfer = piecing_[i];
    if (!is_of(*transfer, peer, claim)) continue;
    if (head.offset != transfer->moved || head.bytes > transfer->expected - transfer->moved)
      return fault(link, "sent a piece that doesn't follow");
    if (!write_piece(*transfer, {at + sizeof head, head.bytes})) return false;
    const bool failed = transfer->done.load(std::memory_order_relaxed);
    if (!failed && transfer->moved < transfer->expected) return true;
    remove(piecing_, i);
    if (!failed && transfer->writer)
      moving_.push_back(transfer);
    else if (!failed)
      end(*transfer);
    return true;
  }
  return true;  // Its receive has given up.
}

bool ReceiveSide::is_awaited(int peer) const noexcept {
  const auto wants = [&](int source) { return source == any_source || source == peer; };
  return matching_.is_awaited(peer) || std::ranges::any_of(probed_, wants);
}

void ReceiveSide::end_probe(int source) {
  const auto at = std::ranges::find(probed_, source);
  if (at != probed_.end()) probed_.erase(at);
}

const ContextAbort* ReceiveSide::abort_of(std::uint64_t context) const noexcept {
  const auto found = aborts_.find(context);
  return found == aborts_.end() ? nullptr : &found->second;
}

}  // namespace quadriga::message
