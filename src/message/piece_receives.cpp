// SPDX-License-Identifier: BSD-3-Clause
// src/message/piece_receives.cpp: taking pieces from rings, and what ends early.
#include "message/piece_receives.h"

#include <algorithm>
#include <cstring>

#include "message/arriving.h"

namespace quadriga::message {

void PieceReceives::want(const TransferPtr& transfer) {
  PeerLink& link = sender_of(links_, *transfer);
  transfer->moved = 0;
  transfer->stop_moving();
  if (!link.claims.change(transfer->claim, ClaimState::claimed, ClaimState::wanted))
    return end_withdrawn(*transfer, ends_);
  link.bell.ring();
  all_.push_back(transfer);
}

bool PieceReceives::advance(int peer, PeerLink& link) {
  bool moved = false;
  // So many at a time that other ranks have their turn.
  const auto turns = static_cast<int>(link.messages_in.slots());
  for (int turn = 0; turn < turns; ++turn) {
    const std::byte* const at = link.pieces_in.front();
    if (at == nullptr) break;
    if (!take(peer, link, at)) return moved;
    if (link.pieces_in.pop()) link.bell.ring();
    moved = true;
  }
  moved = end_of_gone(peer, link) || moved;
  return end_abandoned(peer, link) || moved;
}

// False if it must wait, or isn't valid.
bool PieceReceives::take(int peer, PeerLink& link, const std::byte* at) {
  PieceHead head;
  std::memcpy(&head, at, sizeof head);
  if (head.bytes == 0 || head.bytes > link.pieces_in.capacity() - sizeof head)
    return link.distrust("sent a piece of a wrong size"), false;
  const auto found = std::ranges::find_if(all_, [&](const TransferPtr& each) {
    return each->sender == peer && each->claim == Claim{head.index, head.number};
  });
  if (found == all_.end()) return true;  // Its receive has given up.
  const TransferPtr transfer = *found;
  if (head.offset != transfer->moved || head.bytes > transfer->expected - transfer->moved)
    return link.distrust("sent a piece that doesn't follow"), false;
  if (!write(*transfer, {at + sizeof head, head.bytes})) return false;
  const bool failed = transfer->done.load(std::memory_order_relaxed);
  if (!failed && transfer->moved < transfer->expected) return true;
  all_.erase(found);
  if (!failed && transfer->writer)
    moves_.add(transfer);
  else if (!failed)
    ends_.end(*transfer);
  return true;
}

// False if a device has no room for it yet.
bool PieceReceives::write(MessageTransfer& transfer, std::span<const std::byte> piece) {
  if (!transfer.place.on_device()) {
    unpack_at(transfer.place, transfer.moved, piece);
  } else {
    try {
      if (!writer_of(transfer).write(piece)) return false;
    } catch (const std::exception&) {
      PeerLink& link = sender_of(links_, transfer);
      link.claims.change(transfer.claim, ClaimState::wanted, ClaimState::discarded);
      link.bell.ring();
      ends_.end(transfer, std::current_exception());
      return true;
    }
  }
  transfer.moved += piece.size();
  return true;
}

// A sender that gave up sends no more pieces; those that it sent have been taken.
bool PieceReceives::end_abandoned(int peer, PeerLink& link) {
  if (link.pieces_in.front() != nullptr) return false;
  return std::erase_if(all_, [&](const TransferPtr& each) {
           if (each->sender != peer || link.claims.state(each->claim) != ClaimState::abandoned)
             return false;
           link.claims.change(each->claim, ClaimState::abandoned, ClaimState::done);
           end_withdrawn(*each, ends_);
           return true;
         }) > 0;
}

bool PieceReceives::has_pieces_of(int peer) const noexcept {
  if (peer < 0) return false;
  const PeerLink& link = links_[static_cast<std::size_t>(peer)];
  return link.is_believed && link.pieces_in.front() != nullptr;
}

bool PieceReceives::end_of_gone(int peer, const PeerLink& link) {
  if (link.presence == Presence::here || has_pieces_of(peer)) return false;
  return std::erase_if(all_, [&](const TransferPtr& each) {
           if (each->sender != peer) return false;
           ends_.end(*each, loss_of(*each, peer, link));
           return true;
         }) > 0;
}

bool PieceReceives::cancel(const TransferPtr& transfer) {
  if (std::erase(all_, transfer) == 0) return false;
  PeerLink& link = sender_of(links_, *transfer);
  if (!link.claims.change(transfer->claim, ClaimState::wanted, ClaimState::discarded))
    link.claims.change(transfer->claim, ClaimState::abandoned, ClaimState::done);
  link.bell.ring();
  return true;
}

void PieceReceives::drop(
    int peer, const std::function<std::exception_ptr(const MessageTransfer&)>& error_of) {
  if (has_pieces_of(peer)) return;
  std::erase_if(all_, [&](const TransferPtr& each) {
    if (each->sender != peer) return false;
    ends_.end(*each, error_of(*each));
    return true;
  });
}

}  // namespace quadriga::message
