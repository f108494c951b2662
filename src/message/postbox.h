// SPDX-License-Identifier: BSD-3-Clause
// src/message/postbox.h: receives that wait for their messages, and messages that nobody has asked
// for yet, within what their senders may leave there.
//
// Invariants
//   1. All functions are called with the endpoint's lock.
//   2. No receive waits beside a message that it accepts (matching.h), but for an offer that was
//      withdrawn: that is dropped when it is met.
//   3. A rank's messages that lie aside take most_unexpected bytes and an envelope more at most; of
//      its offers, as many lie aside as it has claims, and twice that with withdrawn ones.
//   4. large_ counts the waiting receives whose messages may be large.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "message/matching.h"
#include "message/peer_link.h"
#include "message/transfer.h"
#include "message/wire/arrival.h"

namespace quadriga::message {

/// Packed bytes of messages from one rank that nobody has asked for yet.
inline constexpr std::size_t most_unexpected = std::size_t{4} << 20;

using ArrivalPtr = std::shared_ptr<Arrival>;

class Postbox {
 public:
  explicit Postbox(PeerLinks& links) : links_(links) {}

  /// The oldest receive that accepts a message: it waits no longer.
  std::optional<TransferPtr> take_receive(const Address& message);
  bool accepts(const Address& message) const noexcept { return matching_.accepts(message); }
  /// The oldest message that a receive accepts: it lies aside no longer. Null: there is none.
  ArrivalPtr take_message(const Address& wanted);
  /// One that no message aside is for.
  void add_receive(TransferPtr transfer);
  /// Withdraws a receive; whether it waited here.
  bool remove(const TransferPtr& transfer);
  std::list<TransferPtr> remove_receives(
      const std::function<bool(const Address&, const MessageTransfer&)>& which);
  std::vector<TransferPtr> receives() const;

  /// Whether a whole message of another rank may be set aside: there is room, or somebody waits for
  /// what is behind it.
  bool has_room(int peer) const noexcept;
  /// Sets aside a message that no receive accepts: a whole one with its packed bytes, or an offer.
  void add_whole(const Address& address, Arrival&& arrival, const std::byte* packed);
  /// False if its sender has more of them than it may.
  bool add_offer(const Address& address, Arrival&& arrival);
  /// Of this rank to itself: it takes as much as it takes.
  void add_own(const Address& address, ArrivalPtr message) {
    matching_.add_message(address, std::move(message));
  }
  /// The oldest message that a receive would take after those of `before`.
  std::optional<MessageStatus> find(const Address& wanted, std::span<const Address> before,
                                    const Group& group) const;
  /// Between them a probe waits for messages of a source, or any, as a receive does.
  void begin_probe(int source) { probed_.push_back(source); }
  void end_probe(int source);
  /// Whether receives wait whose messages may be large.
  bool has_large() const noexcept { return large_ > 0; }

 private:
  PeerLink& link(int peer) const { return links_[static_cast<std::size_t>(peer)]; }

  PeerLinks& links_;
  Matching<TransferPtr, ArrivalPtr> matching_;
  std::size_t large_ = 0;
  std::vector<int> probed_;
};

}  // namespace quadriga::message
