// SPDX-License-Identifier: BSD-3-Clause
// src/message/send_side.cpp: publishing messages, following their claims, sending pieces.
#include "message/send_side.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cstring>

#include "message/pack_stream.h"

namespace quadriga::message {
namespace {

Envelope envelope_of(const MessageBuffer& place, int tag, std::uint32_t context) noexcept {
  const ElementSignature& elements = place.layout.elements();
  Envelope envelope;
  envelope.context = context;
  envelope.tag = tag;
  envelope.type = static_cast<std::uint8_t>(elements.type());
  envelope.uniform = elements.uniform() ? 1 : 0;
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
void remove(std::vector<TransferPtr>& from, std::size_t index) {
  std::swap(from[index], from.back());
  from.pop_back();
}

}  // namespace

SendSide::SendSide(const SharedSegment& segment, int rank, PeerLinks& links)
    : claims_(segment, rank), links_(links), backlog_(links.size()), numbers_(claims_per_rank) {
  for (std::uint32_t i = claims_per_rank; i-- > 0;) free_claims_.push_back(i);
}

bool SendSide::send_now(const MessageBuffer& place, int peer, int tag,
                        std::uint32_t context) noexcept {
  const auto index = static_cast<std::size_t>(peer);
  PeerLink& link = links_[index];
  const std::size_t bytes = place.bytes();
  if (bytes + sizeof(Envelope) > link.messages_out.capacity() || !backlog_[index].empty())
    return false;
  std::byte* const at = link.messages_out.reserve();
  if (at == nullptr) return false;
  Envelope envelope = envelope_of(place, tag, context);
  envelope.bytes = static_cast<std::uint32_t>(bytes);
  std::memcpy(at, &envelope, sizeof envelope);
  pack_into(place, at + sizeof envelope, bytes);
  link.messages_out.publish();
  link.bell.ring();
  return true;
}

void SendSide::send_abort(int peer, std::uint32_t context, const std::string& why) noexcept {
  PeerLink& link = links_[static_cast<std::size_t>(peer)];
  std::byte* const at = link.messages_out.reserve();
  if (at == nullptr) return;
  Envelope envelope;
  envelope.context = context;
  envelope.kind = EnvelopeKind::abort;
  envelope.bytes = static_cast<std::uint32_t>(why.size());
  std::memcpy(at, &envelope, sizeof envelope);
  std::memcpy(at + sizeof envelope, why.data(), why.size());
  link.messages_out.publish();
  link.bell.ring();
}

void SendSide::start(TransferPtr transfer) {
  const auto peer = static_cast<std::size_t>(transfer->peer);
  if (backlog_[peer].empty() && publish(transfer)) return;
  backlog_[peer].push_back(std::move(transfer));
  ++waiting_;
}

void SendSide::end(MessageTransfer& transfer, std::exception_ptr error) noexcept {
  transfer.finish(std::move(error));
  ended_ = true;
}

bool SendSide::publish(const TransferPtr& transfer) {
  PeerLink& link = links_[static_cast<std::size_t>(transfer->peer)];
  if (transfer->place.bytes() + sizeof(Envelope) <= link.messages_out.capacity()) {
    std::byte* const at = link.messages_out.reserve();
    if (at == nullptr) return false;
    write(link, at, *transfer);
    end(*transfer);
    return true;
  }
  std::byte* const at = free_claims_.empty() ? nullptr : link.messages_out.reserve();
  if (at == nullptr) return false;
  transfer->claim.index = free_claims_.back();
  free_claims_.pop_back();
  transfer->claim.number = ++numbers_[transfer->claim.index];
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
    envelope.bytes = static_cast<std::uint32_t>(bytes);
    pack_into(transfer.place, at + sizeof envelope, bytes);
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
  for (std::size_t i = 0; i < piecing_.size();) {
    const TransferPtr transfer = piecing_[i];
    moved = send_pieces(*transfer) || moved;
    if (!transfer->done.load(std::memory_order_relaxed)) {
      ++i;
      continue;
    }
    free_claims_.push_back(transfer->claim.index);
    remove(piecing_, i);
  }
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
    if (state == ClaimState::offered || state == ClaimState::claimed) {
      ++i;
      continue;
    }
    moved = true;
    remove(offered_, i);
    if (state == ClaimState::wanted) {
      piecing_.push_back(transfer);
      continue;
    }
    free_claims_.push_back(transfer->claim.index);
    if (state == ClaimState::refused)
      end(*transfer, std::make_exception_ptr(Error(
                         Errc::invalid_argument,
                         fmt::format("{}: the receive expects other elements than {}",
                                     transfer->text(), transfer->place.layout.elements().text()))));
    else
      end(*transfer);
  }
  return moved;
}

bool SendSide::send_pieces(MessageTransfer& transfer) {
  if (claims_.state(transfer.claim) == ClaimState::discarded) {
    end(transfer);
    return true;
  }
  PeerLink& link = links_[static_cast<std::size_t>(transfer.peer)];
  const Packer packer(transfer.place.layout, transfer.place.data);
  bool moved = false;
  while (transfer.moved < transfer.expected) {
    std::byte* const at = link.pieces_out.reserve();
    if (at == nullptr) return moved;
    const std::size_t room = link.pieces_out.capacity() - sizeof(PieceHead);
    const std::size_t bytes = packer.pack(transfer.moved, {at + sizeof(PieceHead), room});
    const PieceHead head{transfer.claim.index, transfer.claim.number, transfer.moved, bytes};
    std::memcpy(at, &head, sizeof head);
    link.pieces_out.publish();
    link.bell.ring();
    transfer.moved += bytes;
    moved = true;
  }
  end(transfer);
  return true;
}

bool SendSide::cancel(const MessageTransfer& transfer) {
  const auto is_it = [&](const TransferPtr& each) { return each.get() == &transfer; };
  auto& backlog = backlog_[static_cast<std::size_t>(transfer.peer)];
  if (const auto at = std::ranges::find_if(backlog, is_it); at != backlog.end()) {
    backlog.erase(at);
    --waiting_;
    return true;
  }
  if (const auto at = std::ranges::find_if(offered_, is_it); at != offered_.end()) {
    if (claims_.change(transfer.claim, ClaimState::wanted, ClaimState::abandoned)) {
      offered_.erase(at);  // As below.
      return true;
    }
    if (!claims_.change(transfer.claim, ClaimState::offered, ClaimState::withdrawn)) return false;
    // The number makes the word another message's: what is said of this one comes to nothing.
    free_claims_.push_back(transfer.claim.index);
    offered_.erase(at);
    return true;
  }
  if (const auto at = std::ranges::find_if(piecing_, is_it); at != piecing_.end()) {
    // Not used again: the receiver must see that the message ends here, whenever it looks.
    claims_.change(transfer.claim, ClaimState::wanted, ClaimState::abandoned);
    piecing_.erase(at);
    return true;
  }
  return false;
}

void SendSide::drop(int peer, const std::function<bool(const MessageTransfer&)>& also,
                    const std::function<std::exception_ptr(const MessageTransfer&)>& error_of) {
  for (const TransferPtr& each : pending()) {
    const bool is_gone = each->peer == peer;
    if (!is_gone && !also(*each)) continue;
    // The message may have been read before its receiver went.
    const bool is_read = each->expected > 0 && claims_.state(each->claim) == ClaimState::done;
    // Of those that live, one that reads just now is left to end.
    if (!cancel(*each) && !is_gone) continue;
    if (is_gone) std::erase(offered_, each);
    end(*each, is_read ? nullptr : error_of(*each));
  }
}

std::vector<TransferPtr> SendSide::pending() const {
  std::vector<TransferPtr> all(offered_);
  all.insert(all.end(), piecing_.begin(), piecing_.end());
  for (const auto& each : backlog_) all.insert(all.end(), each.begin(), each.end());
  return all;
}

}  // namespace quadriga::message
