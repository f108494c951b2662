// SPDX-License-Identifier: BSD-3-Clause
// src/message/exchange_transfers.h: sends and receives that are made once and started often.
//
// Invariants
//   1. Each start uses the same transfers, once all of them have ended; one thread at a time.
//   2. What the exchange keeps lives until it has ended and nobody holds it: each transfer that is
//      under way holds it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "message/endpoint.h"

namespace quadriga::message {

class ExchangeTransfers {
 public:
  /// Errors: invalid_argument if elements to be received overlap.
  ExchangeTransfers(std::shared_ptr<Endpoint> endpoint, const std::vector<Posting>& receives,
                    const std::vector<Posting>& sends, std::shared_ptr<void> keep = {},
                    std::vector<std::optional<std::uintptr_t>> streams = {});

  /// What the streams hold comes first; that isn't waited for here.
  /// Errors: invalid_argument if it hasn't ended; unavailable; device_lost of a stream's device.
  ///         What else is wrong, wait() says.
  void start() const;
  /// Errors: the first transfer's that failed, the others being withdrawn; deadline: it goes on.
  void wait(const Patience& patience) const;
  /// Whether all have ended. Errors: as wait().
  bool test() const;
  /// Withdraws what hasn't ended; whether there was any.
  bool cancel() const;
  /// Of the receives, in order, once all have ended.
  std::vector<MessageStatus> received() const;

 private:
  void end() const;

  const std::shared_ptr<Endpoint> endpoint_;
  const std::shared_ptr<void> keep_;
  const std::size_t receives_;
  std::vector<TransferPtr> all_;  ///< Receives first, so that nothing arrives unexpected.
  const std::vector<std::optional<std::uintptr_t>> streams_;  ///< Of each, or none at all.
};

}  // namespace quadriga::message
