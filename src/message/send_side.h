// SPDX-License-Identifier: BSD-3-Clause
// src/message/send_side.h: the messages that a rank sends to others: in slots, offered, in pieces.
//
// Invariants
//   1. All functions are called with the endpoint's lock.
//   2. Messages to a rank are published in the order of their calls: behind one that waits for a
//      slot or for a claim, all later ones to that rank wait too.
//   3. A transfer that isn't done is in exactly one of backlog_, offered_ and piecing_; its memory
//      is touched only while it is there.
//   4. A message whose claim is held isn't taken back: what reads it is queued on a device. Nobody
//      waits for that with the lock.
//   5. A claim's index is used again only after its message has ended for both sides, with a new
//      number.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "message/device_exports.h"
#include "message/peer_link.h"
#include "message/transfer.h"
#include "message/transfer_ends.h"
#include "message/wire/envelope.h"

namespace quadriga::message {

class SendSide {
 public:
  SendSide(const SharedSegment& segment, int rank, PeerLinks& links, TransferEnds& ends);

  /// Sends what fits a slot if there is one now; false: start() it.
  bool send_now(const MessageBuffer& place, int peer, int tag, std::uint64_t context) noexcept;
  void start(TransferPtr transfer);
  /// Says that a context is aborted, unless the ring is full.
  void send_abort(int peer, const ContextAbort& why) noexcept;
  /// Whether anything moved.
  bool advance();
  /// Whether a device reads its memory, by what is queued, for a receiver that is here.
  bool is_held(const MessageTransfer& transfer) const;
  /// Takes a transfer out; false if its receiver has ended it or holds it, or has begun to read it
  /// and such sends are kept.
  bool cancel(const MessageTransfer& transfer, BegunSends begun = BegunSends::withdrawn);
  /// Ends all sends to a rank that is gone, and those of which `also` holds, by an error; not those
  /// that their receivers hold.
  void drop(int peer, const std::function<bool(const MessageTransfer&)>& also,
            const std::function<std::exception_ptr(const MessageTransfer&)>& error_of);
  /// Whether devices bring pieces that are to be sent, or streams of the program come before.
  bool has_moves() const noexcept;
  /// Transfers that need the receiver: who computes meanwhile leaves them to the service thread.
  bool has_large() const noexcept { return !offered_.empty() || !piecing_.empty() || waiting_ > 0; }
  std::vector<TransferPtr> pending() const;

 private:
  Claim next_claim(std::size_t peer);
  void free(const Claim& claim);
  bool take_back(const Claim& claim, BegunSends begun);
  bool publish(const TransferPtr& transfer);
  bool flush(int peer);
  bool look_at_claims();
  bool send_pieces(MessageTransfer& transfer);
  void write(PeerLink& link, std::byte* at, const MessageTransfer& transfer);
  void fail_pieces(MessageTransfer& transfer);
  std::size_t pack_piece(MessageTransfer& transfer, std::span<std::byte> into);

  Claims claims_;
  PeerLinks& links_;
  TransferEnds& ends_;
  std::vector<std::deque<TransferPtr>> backlog_;  ///< By rank.
  std::size_t waiting_ = 0;                       ///< Of all backlogs.
  std::vector<TransferPtr> offered_;
  std::vector<TransferPtr> piecing_;
  std::vector<std::vector<std::uint32_t>> free_claims_;  ///< By rank.
  std::vector<Claim> abandoned_;                         ///< Not acknowledged yet.
  std::vector<std::vector<std::uint32_t>> numbers_;      ///< The last use of each claim, by rank.
  DeviceExports exports_;
};

}  // namespace quadriga::message
