// SPDX-License-Identifier: BSD-3-Clause
// src/message/posting.h: what is asked of an endpoint: a message, and how long it may take.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "message/transfer.h"

namespace quadriga::message {

/// How long a call waits.
struct Patience {
  double seconds = -1;                ///< Negative: for ever.
  std::function<void()> interrupt{};  ///< Called every 50 ms or so; may throw.
  /// When the seconds begin; without it, with the wait. Several waits of one call share it.
  std::optional<std::chrono::steady_clock::time_point> since{};
};

/// A message to be sent or received.
struct Posting {
  MessageBuffer place;
  int peer = 0;  ///< Of the world; any_source.
  int tag = 0;
  std::uint64_t context = 0;
  std::shared_ptr<const Group> group;
  CallKind operation = CallKind::none;
  std::shared_ptr<void> keep{};
  std::shared_ptr<StreamOrder> order{};
};

/// A transfer that hasn't started. Errors: invalid_argument if elements to be received overlap.
TransferPtr transfer_of(const Posting& posting, bool sends);
/// What a transfer was asked for, without its memory.
Posting posting_of(const MessageTransfer& transfer);

}  // namespace quadriga::message
