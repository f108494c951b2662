// SPDX-License-Identifier: BSD-3-Clause
// src/message/device_reach.h: whether a receive reaches its message in a device's memory, straight
// from there to where it belongs; and what a pair of ranks found out about that.
//
// Invariants
//   1. All functions are called with the endpoint's lock.
//   2. The first result of a pair stays, and both ranks see it; but what was wrong with one
//      allocation says nothing of others.
#pragma once

#include <string>

#include "message/peer_link.h"
#include "message/transfer.h"
#include "message/transfer_ends.h"
#include "message/wire/arrival.h"

namespace quadriga::message {

class DeviceReach {
 public:
  DeviceReach(PeerLinks& links, TransferEnds& ends) : links_(links), ends_(ends) {}

  /// Gives the receive of a claimed message what copies it from there; false if it isn't reached.
  /// Errors: device_lost.
  bool reach(MessageTransfer& transfer, const Arrival& arrival);

 private:
  bool reach_other(PeerLink& link, MessageTransfer& transfer, const Arrival& arrival);
  bool reach_own(PeerLink& link, MessageTransfer& transfer, const DeviceSource& source);
  void note_path(PeerLink& link, PairPath path, const std::string& why);

  PeerLinks& links_;
  TransferEnds& ends_;
};

}  // namespace quadriga::message
