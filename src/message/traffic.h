// SPDX-License-Identifier: BSD-3-Clause
// src/message/traffic.h: all transfers of a rank, and what becomes of them when another rank goes.
//
// Invariants
//   1. All functions are called with the endpoint's lock.
//   2. A rank's loss is noted only after all that it had sent was taken from its rings, but for
//      pieces that a device has no room for yet: they are taken later.
//   3. Nothing is started that needs a rank that is gone, or belongs to an aborted context.
//   4. A receive whose stream hasn't come so far is in delayed_, and so is each later one that
//      might take the same message: they start in order. So are messages of this rank to itself.
//      The stream waits for no message that hasn't arrived, so it gets there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "message/posting.h"
#include "message/receive_side.h"
#include "message/send_side.h"
#include "message/service_thread.h"

namespace quadriga::message {

class Traffic {
 public:
  Traffic(const SharedSegment& segment, int rank, const std::vector<Member>& members);

  SendSide& sends() noexcept { return sends_; }
  ReceiveSide& receives() noexcept { return receives_; }
  const ContextAborts& aborts() const noexcept { return aborts_; }
  const PeerLink& link(int rank) const { return links_[static_cast<std::size_t>(rank)]; }
  /// Whether devices copy what has to be asked after.
  bool has_moves() const noexcept {
    return !delayed_.empty() || receives_.has_moves() || sends_.has_moves();
  }
  bool has_large() const noexcept {
    return !delayed_.empty() || receives_.has_large() || sends_.has_large();
  }

  /// Sends what fits a slot if there is one now.
  bool send_now(const Posting& message);
  void start(const TransferPtr& transfer);
  void start_move(const TransferPtr& transfer);
  /// Withdraws a transfer; false for a send that its receiver has ended, or holds.
  bool cancel(const TransferPtr& transfer, BegunSends begun = BegunSends::withdrawn);
  /// Whether no send goes on, and no receive for which a stream waits.
  bool is_quiet() const { return pending_sends().empty() && !receives_.has_led(); }
  /// Sends that haven't ended.
  std::vector<TransferPtr> pending_sends() const;
  /// The oldest message that a receive would get, were it started now.
  std::optional<MessageStatus> find(const Address& wanted, const Group& group) const;
  /// Ends all receives.
  void drop_receives(const std::function<std::exception_ptr(const MessageTransfer&)>& error_of);
  /// Moves everything on; whether anything moved.
  bool progress();
  /// Ends what a rank that is gone was needed for.
  void lose(int peer, Presence presence, const std::string& reason);
  void look_for_departures();
  /// A rank without which a receive from any rank can't go on: one that is lost, or, if nobody else
  /// is here, one that left; else -1.
  int needed_by_any(const Group& group) const noexcept;
  /// Ends a context here, and tells the others.
  void abort(const Group& group, const ContextAbort& why);
  /// Tells the others that this rank has left.
  void leave();
  /// Ends a transfer that neither side has, or has any more; what it kept is let go.
  void end(MessageTransfer& transfer, std::exception_ptr error = nullptr) {
    ends_.end(transfer, std::move(error));
  }
  /// To be destroyed without the lock.
  Leftovers take_left() noexcept { return ends_.take_left(); }

 private:
  int size() const noexcept { return segment_.shape().ranks; }
  void end_aborted(std::uint64_t context);
  bool is_delayed(const TransferPtr& transfer);
  void start_here(const TransferPtr& transfer);
  void start_receive(const TransferPtr& transfer);
  bool start_delayed();
  void drop_delayed(const std::function<bool(const MessageTransfer&)>& which,
                    const std::function<std::exception_ptr(const MessageTransfer&)>& error_of);

  const SharedSegment& segment_;
  const int rank_;
  const Doorbell own_;
  PeerLinks links_;
  ContextAborts aborts_;
  TransferEnds ends_;
  SendSide sends_;
  ReceiveSide receives_;
  std::vector<TransferPtr> delayed_;
  std::uint32_t departures_ = 0;
};

}  // namespace quadriga::message
