// SPDX-License-Identifier: BSD-3-Clause
// src/message/piece_receives.h: receives whose message its sender sends in pieces, since its memory
// can't be read.
//
// Invariants
//   1. All functions are called with the endpoint's lock.
//   2. Piece rings are always read: what is in them has its receive here, or is dropped. So large
//      messages move on however many small ones nobody receives.
//   3. Pieces of a message follow each other; of one that doesn't, nothing is believed any more.
//   4. A rank that is gone is read until its ring is empty: only then do its receives end. So it is
//      with a sender that gave up, which is acknowledged then.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "message/moving_receives.h"
#include "message/peer_link.h"
#include "message/transfer.h"
#include "message/transfer_ends.h"

namespace quadriga::message {

class PieceReceives {
 public:
  PieceReceives(PeerLinks& links, TransferEnds& ends, MovingReceives& moves)
      : links_(links), ends_(ends), moves_(moves) {}

  /// Asks the sender of a claimed message for pieces.
  void want(const TransferPtr& transfer);
  /// Takes what a rank has sent; whether anything moved.
  bool advance(int peer, PeerLink& link);
  /// Ends receives from a rank that is gone once its ring is empty; whether any ended.
  bool end_of_gone(int peer, const PeerLink& link);
  /// Withdraws one; whether it was here.
  bool cancel(const TransferPtr& transfer);
  /// Ends those whose sender is gone and has nothing left in its ring.
  void drop(int peer, const std::function<std::exception_ptr(const MessageTransfer&)>& error_of);
  bool empty() const noexcept { return all_.empty(); }
  const std::vector<TransferPtr>& all() const noexcept { return all_; }

 private:
  bool take(int peer, PeerLink& link, const std::byte* at);
  bool write(MessageTransfer& transfer, std::span<const std::byte> piece);
  bool end_abandoned(int peer, PeerLink& link);
  bool has_pieces_of(int peer) const noexcept;

  PeerLinks& links_;
  TransferEnds& ends_;
  MovingReceives& moves_;
  std::vector<TransferPtr> all_;
};

}  // namespace quadriga::message
