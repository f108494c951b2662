// SPDX-License-Identifier: BSD-3-Clause
// src/message/host_reads.h: receives that read their message in its sender's memory.
//
// Invariants
//   1. All functions are called with the endpoint's lock; a call reads read_bytes at most.
//   2. What was read counts only if the claim then changes from `claimed` to `done`, and the
//      process that was read lives: else its number may be another's.
//   3. A process that can't be read, and hasn't ended, is never tried again: its messages come in
//      pieces.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "message/moving_receives.h"
#include "message/peer_link.h"
#include "message/piece_receives.h"
#include "message/transfer.h"
#include "message/transfer_ends.h"

namespace quadriga::message {

class HostReads {
 public:
  HostReads(PeerLinks& links, TransferEnds& ends, MovingReceives& moves, PieceReceives& pieces)
      : links_(links), ends_(ends), moves_(moves), pieces_(pieces) {}

  /// One whose message is claimed.
  void add(TransferPtr transfer) { all_.push_back(std::move(transfer)); }
  /// Goes on reading, the oldest first; whether anything moved.
  bool advance();
  /// Withdraws one, which is its sender's end, too; whether it was here.
  bool cancel(const TransferPtr& transfer);
  /// Ends those whose sender is gone.
  void drop(int peer, const std::function<std::exception_ptr(const MessageTransfer&)>& error_of);
  bool empty() const noexcept { return all_.empty(); }
  const std::vector<TransferPtr>& all() const noexcept { return all_; }

 private:
  bool read_on(MessageTransfer& transfer, std::size_t& most);
  bool give_way(MessageTransfer& transfer, PeerLink& link, int error);
  bool conclude(MessageTransfer& transfer, PeerLink& link);

  PeerLinks& links_;
  TransferEnds& ends_;
  MovingReceives& moves_;
  PieceReceives& pieces_;
  std::vector<TransferPtr> all_;
  std::vector<std::byte> bounce_;
};

}  // namespace quadriga::message
