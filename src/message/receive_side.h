// SPDX-License-Identifier: BSD-3-Clause
// src/message/receive_side.h: the messages that arrive at a rank, and which way each takes to its
// receive.
//
// Invariants
//   1. All functions are called with the endpoint's lock.
//   2. A rank's messages are taken from its ring in order, each into the receive that accepts it,
//      or aside. While there is no room aside, the ring is read on only for a receive that may
//      accept what is behind; the sender runs out of credit then.
//   3. What another rank wrote is checked before it is used (arrival.h); what is wrong ends that
//      rank's link (PeerLink::distrust), not this process.
//   4. A large message is claimed before a receive is taken for it: one that was withdrawn takes
//      none.
//   5. A receive that isn't done is in exactly one of postbox_, reads_, pieces_ and moves_.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "message/context_aborts.h"
#include "message/device_reach.h"
#include "message/host_reads.h"
#include "message/moving_receives.h"
#include "message/piece_receives.h"
#include "message/postbox.h"

namespace quadriga::message {

class ReceiveSide {
 public:
  /// `claims` is how many each sender has.
  ReceiveSide(int rank, std::uint32_t claims, PeerLinks& links, ContextAborts& aborts,
              TransferEnds& ends);

  void start(TransferPtr transfer);
  /// What devices do for this rank alone: a transfer with its `copier`.
  void start_move(TransferPtr transfer);
  /// Makes the receive's stream wait for its end, which is queued. Nothing if it can't.
  void lead(MessageTransfer& transfer) { moves_.lead(transfer); }
  /// A message of this rank to itself. Nobody else will take it: it never waits for its receive.
  void send_to_self(const MessageBuffer& place, int tag, std::uint64_t context);
  /// Where probes look, and wait.
  Postbox& postbox() noexcept { return postbox_; }
  const Postbox& postbox() const noexcept { return postbox_; }
  /// Takes what a rank has sent; whether anything moved. `all` of it: the rank is gone.
  bool advance(int peer, bool all = false);
  /// Goes on reading large messages; whether anything moved.
  bool advance_reads();
  void cancel(const TransferPtr& transfer);
  /// Ends receives that a gone rank was to serve: `waits_for` says of those that aren't matched.
  void drop(int peer, const std::function<bool(const MessageTransfer&)>& waits_for,
            const std::function<std::exception_ptr(const MessageTransfer&)>& error_of);
  /// Ends all receives of which `which` holds; what is being read stays with its sender.
  void drop_if(const std::function<bool(const MessageTransfer&)>& which,
               const std::function<std::exception_ptr(const MessageTransfer&)>& error_of);
  /// Whether receives wait whose messages may be large, or are being received.
  bool has_large() const noexcept {
    return postbox_.has_large() || !reads_.empty() || !pieces_.empty() || !moves_.empty();
  }
  /// Whether devices copy what arrives.
  bool has_moves() const noexcept;
  /// Whether a stream waits for a receive in its caller's place.
  bool has_led() const noexcept { return moves_.has_led(); }

 private:
  bool take(PeerLink& link, int peer, const std::byte* at, bool all);
  bool take_whole(PeerLink& link, Arrival&& arrival, const std::byte* packed, bool all);
  bool take_offer(PeerLink& link, Arrival&& arrival);
  bool claim(const Arrival& arrival);
  bool fits(MessageTransfer& transfer, const Arrival& arrival);
  void deliver(const TransferPtr& transfer, const Arrival& arrival, const std::byte* packed);
  void deliver_to_device(const TransferPtr& transfer, std::span<const std::byte> packed);
  void deliver_large(const TransferPtr& transfer, const Arrival& arrival);
  void deliver_from_device(const TransferPtr& transfer, const Arrival& arrival);

  const int rank_;
  const std::uint32_t claims_;
  PeerLinks& links_;
  ContextAborts& aborts_;
  TransferEnds& ends_;
  Postbox postbox_;
  MovingReceives moves_;
  PieceReceives pieces_;
  HostReads reads_;
  DeviceReach reach_;
};

}  // namespace quadriga::message
