// SPDX-License-Identifier: BSD-3-Clause
// src/message/moving_receives.h: receives for which only devices are waited for, and what devices
// do for this rank alone.
//
// Invariants
//   1. All functions are called with the endpoint's lock, and none waits.
//   2. A receive is here from when all that is left is to be copied by a device until that has
//      ended: its sender's memory is read, or its own written, meanwhile.
//   3. The claim of a message that a device reads is changed to `done` after the device has, and
//      before the receive ends.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "message/peer_link.h"
#include "message/transfer.h"
#include "message/transfer_ends.h"

namespace quadriga::message {

class MovingReceives {
 public:
  MovingReceives(PeerLinks& links, TransferEnds& ends) : links_(links), ends_(ends) {}

  /// A receive with a `copier`, a `reader` or a `writer`.
  void add(TransferPtr transfer) { all_.push_back(std::move(transfer)); }
  /// Whether anything moved; ends those of which all has.
  bool advance();
  /// Makes the receive's stream wait for its end, which is queued. Nothing if it can't.
  void lead(MessageTransfer& transfer);
  /// Stops one, and tells its sender; whether it was here.
  bool cancel(const TransferPtr& transfer);
  /// Ends those whose sender is gone; what a device only writes has arrived.
  void drop(int peer, const std::function<std::exception_ptr(const MessageTransfer&)>& error_of);
  bool empty() const noexcept { return all_.empty(); }
  /// Whether a stream waits for a receive in its caller's place.
  bool has_led() const noexcept;
  const std::vector<TransferPtr>& all() const noexcept { return all_; }

 private:
  bool move_on(MessageTransfer& transfer);
  bool unpack_some(MessageTransfer& transfer);

  PeerLinks& links_;
  TransferEnds& ends_;
  std::vector<TransferPtr> all_;
};

}  // namespace quadriga::message
