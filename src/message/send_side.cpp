// SPDX-License-Identifier: BSD-3-Clause
// src/message/send_side.cpp: publishing messages, following their claims, sending pieces.
#include "message/send_side.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cstring>

#include "message/device_moves.h"
#include "message/pack/stream.h"
#include "message/stream_order.h"

namespace quadriga::message {
namespace {

Envelope envelope_of(const MessageBuffer& place, int tag, std::uint64_t context) noexcept {
  const ElementSignature& elements = place.layout.elements();
  Envelope envelope;
  envelope.context = context;
  envelope.tag = tag;
  envelope.set_type(elements);
  envelope.count = elements.count();
  envelope.hash = elements.hash();
  return envelope;
}

void pack_into(const MessageBuffer& place, std::byte* at, std::size_t bytes) {
  if (bytes == 0) return;
  if (const std::byte* const flat = place.flat())
    std::memcpy(at, flat, bytes);
  else
    Packer(place.layout, place.data).pack(0, {at, bytes});
}

// The order of the others doesn't matter.
void swap_out(std::vector<TransferPtr>& from, std::size_t index) {
  std::swap(from[index], from.back());
  from.pop_back();
}

}  // namespace

SendSide::SendSide(const SharedSegment& segment, int rank, PeerLinks& links, TransferEnds& ends)
    : claims_(segment, rank),
      links_(links),
      ends_(ends),
      backlog_(links.size()),
      free_claims_(links.size()),
      numbers_(links.size()),
      exports_(links.size()) {}

Claim SendSide::next_claim(std::size_t peer) {
  std::vector<std::uint32_t>& free = free_claims_[peer];
  const auto first = static_cast<std::uint32_t>(peer) * claims_per_pair;
  if (free.empty()) {
    free.push_back(first + static_cast<std::uint32_t>(numbers_[peer].size()));
    numbers_[peer].push_back(0);
  }
  const std::uint32_t index = free.back();
  free.pop_back();
  return {index, ++numbers_[peer][index - first]};
}

void SendSide::free(const Claim& claim) {
  free_claims_[claim.index / claims_per_pair].push_back(claim.index);
}

bool SendSide::send_now(const MessageBuffer& place, int peer, int tag,
                        std::uint64_t context) noexcept {
  const auto index = static_cast<std::size_t>(peer);
  PeerLink& link = links_[index];
  const std::size_t bytes = place.bytes();
  if (place.on_device() && bytes > 0) return false;  // It waits for its receive.
  if (bytes + sizeof(Envelope) > link.messages_out.capacity() || !backlog_[index].empty())
    return false;
  std::byte* const at = link.messages_out.reserve(sizeof(Envelope) + bytes);
  if (at == nullptr) return false;
  Envelope envelope = envelope_of(place, tag, context);
  envelope.bytes = static_cast<std::uint16_t>(bytes);
  std::memcpy(at, &envelope, sizeof envelope);
  pack_into(place, at + sizeof envelope, bytes);
  link.messages_out.publish();
  link.bell.ring();
  return true;
}

void SendSide::send_abort(int peer, const ContextAbort& why) noexcept {
  PeerLink& link = links_[static_cast<std::size_t>(peer)];
  std::byte* const at = link.messages_out.reserve();
  if (at == nullptr) return;
  Envelope envelope;
  envelope.context = why.context;
  envelope.kind = EnvelopeKind::abort;
  envelope.tag = why.lost + 1;
  envelope.bytes = static_cast<std::uint16_t>(why.text.size());
  std::memcpy(at, &envelope, sizeof envelope);
  std::memcpy(at + sizeof envelope, why.text.data(), why.text.size());
  link.messages_out.publish();
  link.bell.ring();
}

void SendSide::start(TransferPtr transfer) {
  const auto peer = static_cast<std::size_t>(transfer->peer);
  if (backlog_[peer].empty() && publish(transfer)) return;
  backlog_[peer].push_back(std::move(transfer));
  ++waiting_;
}

bool SendSide::publish(const TransferPtr& transfer) {
  PeerLink& link = links_[static_cast<std::size_t>(transfer->peer)];
  try {
    if (transfer->order && !transfer->order->is_reached()) return false;
  } catch (const std::exception&) {
    ends_.end(*transfer, std::current_exception());
    return true;
  }
  const bool is_offered = transfer->place.on_device() && transfer->place.bytes() > 0;
  if (!is_offered && transfer->place.bytes() + sizeof(Envelope) <= link.messages_out.capacity()) {
    std::byte* const at = link.messages_out.reserve(sizeof(Envelope) + transfer->place.bytes());
    if (at == nullptr) return false;
    write(link, at, *transfer);
    ends_.end(*transfer);
    return true;
  }
  const auto peer = static_cast<std::size_t>(transfer->peer);
  const bool has_claim = !free_claims_[peer].empty() || numbers_[peer].size() < claims_per_pair;
  RingWriter& ring = link.messages_out;
  const std::size_t most = is_offered ? ring.capacity() : sizeof(Envelope) + sizeof(Offer);
  std::byte* const at = has_claim ? ring.reserve(most) : nullptr;
  if (at == nullptr) return false;
  transfer->claim = next_claim(peer);
  transfer->expected = transfer->place.bytes();
  claims_.offer(transfer->claim);
  offered_.push_back(transfer);
  write(link, at, *transfer);
  return true;
}

void SendSide::write(PeerLink& link, std::byte* at, const MessageTransfer& transfer) {
  Envelope envelope = envelope_of(transfer.place, transfer.tag, transfer.context);
  if (transfer.expected == 0) {
    const std::size_t bytes = transfer.place.bytes();
    envelope.bytes = static_cast<std::uint16_t>(bytes);
    pack_into(transfer.place, at + sizeof envelope, bytes);
  } else if (transfer.place.on_device()) {
    const Offer offer{transfer.expected, 0, transfer.claim.index, transfer.claim.number};
    std::byte* const content = at + sizeof envelope;
    std::memcpy(content, &offer, sizeof offer);
    const std::size_t room = link.messages_out.capacity() - sizeof envelope - sizeof offer;
    const std::size_t more =
        exports_.describe(transfer.place, link, {content + sizeof offer, room});
    envelope.kind = EnvelopeKind::device_offer;
    envelope.bytes = static_cast<std::uint16_t>(sizeof offer + more);
  } else {
    const Offer offer{transfer.expected, reinterpret_cast<std::uintptr_t>(transfer.place.flat()),
                      transfer.claim.index, transfer.claim.number};
    envelope.kind = EnvelopeKind::offer;
    envelope.bytes = sizeof offer;
    std::memcpy(at + sizeof envelope, &offer, sizeof offer);
  }
  std::memcpy(at, &envelope, sizeof envelope);
  link.messages_out.publish();
  link.bell.ring();
}

bool SendSide::flush(int peer) {
  auto& backlog = backlog_[static_cast<std::size_t>(peer)];
  bool moved = false;
  while (!backlog.empty() && publish(backlog.front())) {
    backlog.pop_front();
    --waiting_;
    moved = true;
  }
  return moved;
}

bool SendSide::advance() {
  bool moved = false;
  if (!offered_.empty()) moved = look_at_claims();
  std::erase_if(abandoned_, [&](const Claim& each) {
    const bool is_over = claims_.state(each) != ClaimState::abandoned;
    if (is_over) free(each);
    return is_over;
  });
  for (std::size_t i = 0; i < piecing_.size();) {
    const TransferPtr transfer = piecing_[i];
    try {
      moved = send_pieces(*transfer) || moved;
    } catch (const std::exception&) {
      fail_pieces(*transfer);
      swap_out(piecing_, i);
      moved = true;
      continue;
    }
    if (!transfer->done.load(std::memory_order_relaxed)) {
      ++i;
      continue;
    }
    free(transfer->claim);
    swap_out(piecing_, i);
  }
  if (exports_.has_news()) exports_.tell(links_);
  if (waiting_ > 0)
    for (std::size_t peer = 0; peer < backlog_.size(); ++peer)
      moved = flush(static_cast<int>(peer)) || moved;
  return moved;
}

bool SendSide::look_at_claims() {
  bool moved = false;
  for (std::size_t i = 0; i < offered_.size();) {
    const TransferPtr transfer = offered_[i];
    const ClaimState state = claims_.state(transfer->claim);
    if (state == ClaimState::offered || state == ClaimState::claimed || state == ClaimState::held) {
      ++i;
      continue;
    }
    moved = true;
    swap_out(offered_, i);
    if (state == ClaimState::wanted) {
      piecing_.push_back(transfer);
      continue;
    }
    free(transfer->claim);
    if (state == ClaimState::refused)
      ends_.end(*transfer,
                std::make_exception_ptr(Error(
                    Errc::invalid_argument,
                    fmt::format("{}: the receive expects other elements than {}", transfer->text(),
                                transfer->place.layout.elements().text()))));
    else
      ends_.end(*transfer);
  }
  return moved;
}

bool SendSide::send_pieces(MessageTransfer& transfer) {
  if (claims_.state(transfer.claim) != ClaimState::wanted) {
    ends_.end(transfer);  // The receiver wants no more of it.
    return true;
  }
  PeerLink& link = links_[static_cast<std::size_t>(transfer.peer)];
  bool moved = false;
  // No more than the ring holds at a time, however quick the receiver is.
  for (std::size_t most = link.pieces_out.bytes(); transfer.moved < transfer.expected;) {
    if (most < link.pieces_out.capacity()) return moved;
    most -= link.pieces_out.capacity();
    std::byte* const at = link.pieces_out.reserve();
    if (at == nullptr) return moved;
    const std::size_t room = link.pieces_out.capacity() - sizeof(PieceHead);
    const std::size_t bytes = pack_piece(transfer, {at + sizeof(PieceHead), room});
    if (bytes == 0) return moved;  // A device still copies it.
    const PieceHead head{transfer.claim.index, transfer.claim.number, transfer.moved, bytes};
    std::memcpy(at, &head, sizeof head);
    link.pieces_out.publish();
    link.bell.ring();
    transfer.moved += bytes;
    moved = true;
  }
  ends_.end(transfer);
  return true;
}

std::size_t SendSide::pack_piece(MessageTransfer& transfer, std::span<std::byte> into) {
  const MessageBuffer& place = transfer.place;
  if (!place.on_device()) return Packer(place.layout, place.data).pack(transfer.moved, into);
  if (!transfer.reader)
    transfer.reader = std::make_shared<DeviceReader>(place_on_device(place), transfer.expected);
  const std::span<const std::byte> there = transfer.reader->at(transfer.moved);
  const std::size_t bytes = std::min(there.size(), into.size());
  std::ranges::copy(there.first(bytes), into.begin());
  return bytes;
}

// By a device's fault. The receiver is told as of a sender that gave up.
void SendSide::fail_pieces(MessageTransfer& transfer) {
  if (claims_.change(transfer.claim, ClaimState::wanted, ClaimState::abandoned))
    abandoned_.push_back(transfer.claim);
  else
    free(transfer.claim);
  ends_.end(transfer, std::current_exception());
}

bool SendSide::has_moves() const noexcept {
  const auto waits = [](const auto& each) { return !each.empty() && each.front()->order; };
  return std::ranges::any_of(piecing_,
                             [](const TransferPtr& each) { return each->reader != nullptr; }) ||
         (waiting_ > 0 && std::ranges::any_of(backlog_, waits));
}

bool SendSide::is_held(const MessageTransfer& transfer) const {
  const PeerLink& link = links_[static_cast<std::size_t>(transfer.peer)];
  return transfer.claim.number != 0 && claims_.state(transfer.claim) == ClaimState::held &&
         link.presence == Presence::here && (link.process < 0 || process_lives(link.process));
}

// False if the receiver has ended it, or has begun to read what is kept then.
bool SendSide::take_back(const Claim& claim, BegunSends begun) {
  const bool may_be_read = begun == BegunSends::withdrawn;
  if (may_be_read && claims_.change(claim, ClaimState::wanted, ClaimState::abandoned)) {
    abandoned_.push_back(claim);
    return true;
  }
  const bool taken =
      claims_.change(claim, ClaimState::offered, ClaimState::withdrawn) ||
      (may_be_read && (claims_.change(claim, ClaimState::claimed, ClaimState::withdrawn) ||
                       claims_.change(claim, ClaimState::held, ClaimState::withdrawn)));
  // With the next number the word is another message's: what is said of this one does nothing.
  if (taken) free(claim);
  return taken;
}

bool SendSide::cancel(const MessageTransfer& transfer, BegunSends begun) {
  const auto is_it = [&](const TransferPtr& each) { return each.get() == &transfer; };
  auto& backlog = backlog_[static_cast<std::size_t>(transfer.peer)];
  if (const auto at = std::ranges::find_if(backlog, is_it); at != backlog.end()) {
    backlog.erase(at);
    --waiting_;
    return true;
  }
  const auto in_offered = std::ranges::find_if(offered_, is_it);
  const auto in_piecing = std::ranges::find_if(piecing_, is_it);
  if (in_offered == offered_.end() && in_piecing == piecing_.end()) return false;
  if (is_held(transfer) || !take_back(transfer.claim, begun)) return false;
  if (in_offered != offered_.end())
    offered_.erase(in_offered);
  else
    piecing_.erase(in_piecing);
  return true;
}

void SendSide::drop(int peer, const std::function<bool(const MessageTransfer&)>& also,
                    const std::function<std::exception_ptr(const MessageTransfer&)>& error_of) {
  for (const TransferPtr& each : pending()) {
    const bool is_gone = each->peer == peer;
    if (!is_gone && !also(*each)) continue;
    // The message may have been read before its receiver went.
    const bool is_read = each->expected > 0 && claims_.state(each->claim) == ClaimState::done;
    // One that its receiver has ended is seen by the next advance().
    if (!cancel(*each) && !is_gone) continue;
    std::erase(offered_, each);
    std::erase(piecing_, each);
    ends_.end(*each, is_read ? nullptr : error_of(*each));
  }
  // Nobody acknowledges them any more.
  if (peer >= 0)
    std::erase_if(abandoned_, [&](const Claim& each) {
      const bool is_there = static_cast<int>(each.index / claims_per_pair) == peer;
      if (is_there) free(each);
      return is_there;
    });
}

std::vector<TransferPtr> SendSide::pending() const {
  std::vector<TransferPtr> all(offered_);
  all.insert(all.end(), piecing_.begin(), piecing_.end());
  for (const auto& each : backlog_) all.insert(all.end(), each.begin(), each.end());
  return all;
}

}  // namespace quadriga::message
