// SPDX-License-Identifier: BSD-3-Clause
// src/message/receive_side.cpp: taking messages from rings, and bringing them on their way.
#include "message/receive_side.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "message/arriving.h"
#include "message/pack/stream.h"

namespace quadriga::message {
namespace {

Address address_of(const Arrival& arrival) noexcept {
  return {arrival.envelope.context, arrival.source, arrival.envelope.tag};
}

// Why a receive doesn't take a message's elements; empty if they are those that it expects, or
// fewer.
std::string misfit(const MessageBuffer& place, const Arrival& arrival) {
  const ElementSignature sent = signature_of(arrival.envelope);
  const ElementSignature& expected = place.layout.elements();
  if (arrival.bytes > place.bytes())
    return fmt::format("the message has {} bytes ({}), the receive's array only {} ({})",
                       arrival.bytes, sent.text(), place.bytes(), expected.text());
  if (sent.count() == 0 && arrival.bytes == 0) return {};
  // Structs, or single elements, as large as the receive's are.
  const auto whole = [&](const ElementSignature& elements) {
    return elements.count() / expected.period().count();
  };
  const bool same =
      sent == expected || (expected.begins_with(sent) &&
                           arrival.bytes == place.bytes() / whole(expected) * whole(sent));
  if (same) return {};
  return fmt::format("the message's elements are {}, the receive's {}", sent.text(),
                     expected.text());
}

}  // namespace

ReceiveSide::ReceiveSide(int rank, std::uint32_t claims, PeerLinks& links, ContextAborts& aborts,
                         TransferEnds& ends)
    : rank_(rank),
      claims_(claims),
      links_(links),
      aborts_(aborts),
      ends_(ends),
      postbox_(links),
      moves_(links, ends),
      pieces_(links, ends, moves_),
      reads_(links, ends, moves_, pieces_),
      reach_(links, ends) {}

void ReceiveSide::start(TransferPtr transfer) {
  const Address wanted{transfer->context, transfer->peer, transfer->tag};
  while (const ArrivalPtr found = postbox_.take_message(wanted)) {
    if (!found->is_offer()) return deliver(transfer, *found, found->packed.get());
    if (claim(*found)) return deliver_large(transfer, *found);  // Else it was withdrawn.
  }
  postbox_.add_receive(std::move(transfer));
}

void ReceiveSide::start_move(TransferPtr transfer) {
  transfer->sender = rank_;
  moves_.add(std::move(transfer));
}

void ReceiveSide::send_to_self(const MessageBuffer& place, int tag, std::uint64_t context) {
  const auto arrival = std::make_shared<Arrival>();
  const ElementSignature& elements = place.layout.elements();
  arrival->envelope.context = context;
  arrival->envelope.tag = tag;
  arrival->envelope.count = elements.count();
  arrival->envelope.hash = elements.hash();
  arrival->envelope.set_type(elements);
  arrival->bytes = place.bytes();
  arrival->source = rank_;
  // A copy in any case: sender's and receiver's elements may overlap.
  arrival->packed =
      std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(1, arrival->bytes));
  if (place.on_device())
    read_all(place, {arrival->packed.get(), arrival->bytes});
  else
    Packer(place.layout, place.data).pack(0, {arrival->packed.get(), arrival->bytes});
  if (const auto receive = postbox_.take_receive(address_of(*arrival)))
    return deliver(*receive, *arrival, arrival->packed.get());
  postbox_.add_own(address_of(*arrival), arrival);
}

bool ReceiveSide::advance(int peer, bool all) {
  PeerLink& link = links_[static_cast<std::size_t>(peer)];
  if (!link.is_believed) return pieces_.end_of_gone(peer, link);
  bool moved = false;
  // So many at a time that other ranks have their turn.
  const auto turns = static_cast<int>(link.messages_in.slots());
  for (int turn = 0; turn < turns; ++turn) {
    const std::byte* const at = link.messages_in.front();
    if (at == nullptr || !take(link, peer, at, all)) break;
    if (link.messages_in.pop()) link.bell.ring();
    moved = true;
  }
  if (pieces_.empty() && !all) return moved;
  return pieces_.advance(peer, link) || moved;
}

// False if it must wait, or isn't valid.
bool ReceiveSide::take(PeerLink& link, int peer, const std::byte* at, bool all) {
  auto read = arrival_of(at, link.messages_in.capacity(), claims_);
  if (const auto* const fault = std::get_if<SlotFault>(&read))
    return link.distrust(fault->text), false;
  Arrival& arrival = std::get<Arrival>(read);
  arrival.source = peer;
  const Envelope& envelope = arrival.envelope;
  const std::byte* const content = at + sizeof envelope;
  if (arrival.is_offer()) return take_offer(link, std::move(arrival));
  if (envelope.kind == EnvelopeKind::whole)
    return take_whole(link, std::move(arrival), content, all);
  if (envelope.kind == EnvelopeKind::abort) {
    ContextAbort why{envelope.context, {}, envelope.tag - 1};
    why.text.assign(reinterpret_cast<const char*>(content), envelope.bytes);
    if (aborts_.add_from(why, link.aborts)) return true;
    return link.distrust("aborted more contexts than are kept"), false;
  }
  std::uint64_t id = 0;
  std::memcpy(&id, content, sizeof id);
  link.memory.forget(id);
  return true;
}

bool ReceiveSide::take_offer(PeerLink& link, Arrival&& arrival) {
  const Address address = address_of(arrival);
  if (!postbox_.accepts(address)) {
    if (postbox_.add_offer(address, std::move(arrival))) return true;
    return link.distrust("offered more messages than it may"), false;
  }
  if (claim(arrival)) deliver_large(*postbox_.take_receive(address), arrival);
  return true;
}

bool ReceiveSide::take_whole(PeerLink& link, Arrival&& arrival, const std::byte* packed, bool all) {
  static_cast<void>(link);
  const Address address = address_of(arrival);
  if (const auto receive = postbox_.take_receive(address)) {
    deliver(*receive, arrival, packed);
    return true;
  }
  if (!all && !postbox_.has_room(arrival.source)) return false;
  postbox_.add_whole(address, std::move(arrival), packed);
  return true;
}

bool ReceiveSide::claim(const Arrival& arrival) {
  const PeerLink& link = links_[static_cast<std::size_t>(arrival.source)];
  // A rank that has left has withdrawn all; of a lost one the receive will be told.
  if (link.presence == Presence::lost)
    return link.claims.state(arrival.claim()) == ClaimState::offered;
  return link.claims.change(arrival.claim(), ClaimState::offered, ClaimState::claimed);
}

// Whether the message's elements are those that the receive expects, or fewer; else it ends.
bool ReceiveSide::fits(MessageTransfer& transfer, const Arrival& arrival) {
  transfer.status = {transfer.group->rank_of(arrival.source), arrival.envelope.tag, arrival.bytes};
  const std::string why = misfit(transfer.place, arrival);
  if (why.empty()) return true;
  ends_.end(transfer, std::make_exception_ptr(
                          Error(Errc::invalid_argument,
                                fmt::format("{} from rank {}, tag {}: {}", name(transfer.operation),
                                            transfer.status.source, transfer.status.tag, why))));
  return false;
}

void ReceiveSide::deliver(const TransferPtr& transfer, const Arrival& arrival,
                          const std::byte* packed) {
  if (!fits(*transfer, arrival)) return;
  if (transfer->place.on_device()) return deliver_to_device(transfer, {packed, arrival.bytes});
  unpack_at(transfer->place, 0, {packed, arrival.bytes});
  ends_.end(*transfer);
}

// A message of a slot, or of this rank itself, which is of any size and waits for nobody.
void ReceiveSide::deliver_to_device(const TransferPtr& transfer,
                                    std::span<const std::byte> packed) {
  if (packed.empty()) return ends_.end(*transfer);
  transfer->expected = packed.size();
  try {
    if (packed.size() > PortBlocks::block_bytes) {
      write_all(transfer->place, packed);
      return ends_.end(*transfer);
    }
    writer_of(*transfer).write(packed);
  } catch (const std::exception&) {
    return ends_.end(*transfer, std::current_exception());
  }
  moves_.add(transfer);
}

void ReceiveSide::deliver_large(const TransferPtr& transfer, const Arrival& arrival) {
  const PeerLink& link = links_[static_cast<std::size_t>(arrival.source)];
  transfer->sender = arrival.source;
  transfer->claim = arrival.claim();
  transfer->address = arrival.offer.address;
  transfer->expected = arrival.bytes;
  transfer->moved = 0;
  transfer->matched = MessageTransfer::Clock::now();
  if (link.presence != Presence::here)
    return ends_.end(*transfer, loss_of(*transfer, arrival.source, link));
  if (!fits(*transfer, arrival)) {
    // A sender whose message is too long has done nothing wrong: it ends.
    const bool is_longer = arrival.bytes > transfer->place.bytes();
    link.claims.change(transfer->claim, ClaimState::claimed,
                       is_longer ? ClaimState::done : ClaimState::refused);
    link.bell.ring();
    return;
  }
  if (arrival.device)
    deliver_from_device(transfer, arrival);
  else if (link.can_read && link.pid > 0 && arrival.offer.address != 0)
    reads_.add(transfer);
  else
    pieces_.want(transfer);
}

// Straight from the sender's memory where this process reaches it, else in pieces.
void ReceiveSide::deliver_from_device(const TransferPtr& transfer, const Arrival& arrival) {
  try {
    if (reach_.reach(*transfer, arrival)) return moves_.add(transfer);
  } catch (const Error&) {
    return fail_receive(links_, *transfer, std::current_exception(), ends_);
  }
  pieces_.want(transfer);
}

bool ReceiveSide::advance_reads() {
  const bool moved = !moves_.empty() && moves_.advance();
  return reads_.advance() || moved;
}

bool ReceiveSide::has_moves() const noexcept {
  const auto writes = [](const TransferPtr& each) { return each->writer != nullptr; };
  return !moves_.empty() || std::ranges::any_of(reads_.all(), writes) ||
         std::ranges::any_of(pieces_.all(), writes);
}

void ReceiveSide::cancel(const TransferPtr& transfer) {
  static_cast<void>(postbox_.remove(transfer) || reads_.cancel(transfer) ||
                    moves_.cancel(transfer) || pieces_.cancel(transfer));
}

void ReceiveSide::drop(int peer, const std::function<bool(const MessageTransfer&)>& waits_for,
                       const std::function<std::exception_ptr(const MessageTransfer&)>& error_of) {
  const auto gone =
      postbox_.remove_receives([&](const Address& wanted, const MessageTransfer& each) {
        return wanted.source == peer || waits_for(each);
      });
  for (const TransferPtr& each : gone) ends_.end(*each, error_of(*each));
  reads_.drop(peer, error_of);
  pieces_.drop(peer, error_of);
  moves_.drop(peer, error_of);
  if (peer >= 0) links_[static_cast<std::size_t>(peer)].memory.forget_all();
}

void ReceiveSide::drop_if(
    const std::function<bool(const MessageTransfer&)>& which,
    const std::function<std::exception_ptr(const MessageTransfer&)>& error_of) {
  std::vector<TransferPtr> all = postbox_.receives();
  for (const auto* const list : {&reads_.all(), &pieces_.all(), &moves_.all()})
    all.insert(all.end(), list->begin(), list->end());
  for (const TransferPtr& each : all) {
    if (!which(*each)) continue;
    cancel(each);
    // One that a stream waits for has arrived for its caller: its copies have ended by now.
    ends_.end(*each, each->is_led ? nullptr : error_of(*each));
  }
}

}  // namespace quadriga::message
