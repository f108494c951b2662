// SPDX-License-Identifier: BSD-3-Clause
// src/message/receive_ends.cpp: receives that end early: withdrawn on either side, or since a rank
// or a communicator is gone.
#include <quadriga/error.h>

#include <algorithm>

#include "message/device_moves.h"
#include "message/receive_side.h"

namespace quadriga::message {
void ReceiveSide::end_withdrawn(MessageTransfer& transfer) {
  end(transfer,
      std::make_exception_ptr(Error(
          Errc::cancelled, transfer.text() + ": the sender gave up in the middle of the message")));
}

// A sender that gave up sends no more pieces; those that it sent have been taken.
bool ReceiveSide::look_for_abandoned(PeerLink& link, int peer) {
  bool moved = false;
  for (std::size_t i = 0; i < piecing_.size();) {
    const TransferPtr transfer = piecing_[i];
    if (transfer->sender != peer || link.claims.state(transfer->claim) != ClaimState::abandoned ||
        link.pieces_in.front() != nullptr) {
      ++i;
      continue;
    }
    remove(piecing_, i);
    link.claims.change(transfer->claim, ClaimState::abandoned, ClaimState::done);
    end_withdrawn(*transfer);
    moved = true;
  }
  return moved;
}

bool ReceiveSide::has_pieces_of(int peer) const noexcept {
  if (peer < 0) return false;
  const PeerLink& link = links_[static_cast<std::size_t>(peer)];
  return link.is_believed && link.pieces_in.front() != nullptr;
}

// What a rank that is gone had sent in pieces has arrived; what it hadn't, won't.
bool ReceiveSide::end_pieces_of_gone(const PeerLink& link, int peer) {
  if (link.presence == Presence::here || has_pieces_of(peer)) return false;
  bool moved = false;
  for (std::size_t i = 0; i < piecing_.size();) {
    const TransferPtr transfer = piecing_[i];
    if (transfer->sender != peer) {
      ++i;
      continue;
    }
    remove(piecing_, i);
    end(*transfer, loss_of(*transfer, peer, link));
    moved = true;
  }
  return moved;
}

void ReceiveSide::cancel(const TransferPtr& transfer) {
  const auto is_it = [&](const TransferPtr& each) { return each == transfer; };
  const auto waiting = matching_.remove_receives(
      [&](const Address&, const TransferPtr& each) { return is_it(each); });
  if (!waiting.empty() && is_large(*transfer)) --large_;
  if (std::erase_if(reading_, is_it) > 0) {
    // The sender's part is over: nobody else receives the message.
    PeerLink& link = links_[static_cast<std::size_t>(transfer->sender)];
    link.claims.change(transfer->claim, ClaimState::claimed, ClaimState::done);
    link.bell.ring();
  }
  if (std::erase_if(moving_, is_it) > 0) {
    transfer->stop_moving();
    end_claim(*transfer);
  }
  if (std::erase_if(piecing_, is_it) > 0) {
    PeerLink& link = links_[static_cast<std::size_t>(transfer->sender)];
    if (!link.claims.change(transfer->claim, ClaimState::wanted, ClaimState::discarded))
      link.claims.change(transfer->claim, ClaimState::abandoned, ClaimState::done);
    link.bell.ring();
  }
}

void ReceiveSide::drop(int peer, const std::function<bool(const MessageTransfer&)>& waits_for,
                       const std::function<std::exception_ptr(const MessageTransfer&)>& error_of) {
  const auto gone = matching_.remove_receives([&](const Address& wanted, const TransferPtr& each) {
    return wanted.source == peer || waits_for(*each);
  });
  for (const TransferPtr& each : gone) {
    if (is_large(*each)) --large_;
    end(*each, error_of(*each));
  }
  for (auto* const list : {&reading_, &piecing_, &moving_}) {
    for (std::size_t i = 0; i < list->size();) {
      const TransferPtr transfer = (*list)[i];
      // What only a device still writes has arrived, and so may pieces have that it had no room
      // for yet.
      const bool has_arrived = list == &moving_ && transfer->writer;
      const bool may_arrive = list == &piecing_ && has_pieces_of(peer);
      if (transfer->sender != peer || has_arrived || may_arrive) {
        ++i;
        continue;
      }
      remove(*list, i);
      end(*transfer, error_of(*transfer));
    }
  }
  if (peer >= 0) links_[static_cast<std::size_t>(peer)].memory.forget_all();
}

void ReceiveSide::drop_if(
    const std::function<bool(const MessageTransfer&)>& which,
    const std::function<std::exception_ptr(const MessageTransfer&)>& error_of) {
  std::vector<TransferPtr> all;
  matching_.visit_receives([&](const TransferPtr& each) { all.push_back(each); });
  all.insert(all.end(), reading_.begin(), reading_.end());
  all.insert(all.end(), piecing_.begin(), piecing_.end());
  all.insert(all.end(), moving_.begin(), moving_.end());
  for (const TransferPtr& each : all) {
    if (!which(*each)) continue;
    cancel(each);
    // One that a stream waits for has arrived for its caller: its copies have ended by now.
    end(*each, each->is_led ? nullptr : error_of(*each));
  }
}

}  // namespace quadriga::message
