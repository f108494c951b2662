// SPDX-License-Identifier: BSD-3-Clause
// src/message/communicator_common.h: what all copies of a public communicator share.
#pragma once

#include <quadriga/error.h>
#include <quadriga/message.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "message/communicator.h"
#include "message/started_collectives.h"

namespace quadriga::message {

/// Calls from outside the library aren't interrupted: signals are the program's. Given seconds that
/// are negative have passed; `otherwise`, the library's own, has none then.
/// Errors: invalid_argument if the seconds aren't a number.
inline Patience patience_for(Seconds given, double otherwise = -1) {
  const double seconds = given ? std::max(*given, 0.0) : otherwise;
  require(!given || *given == *given, "deadline isn't a number");
  Patience patience;
  patience.seconds = seconds;
  return patience;
}

struct Communicator::Common {
  Common(std::shared_ptr<Endpoint> of, CommunicatorCore made, double seconds)
      : endpoint(std::move(of)), core(std::move(made)), deadline(seconds) {}
  Patience patience(Seconds given) const { return patience_for(given, deadline.load()); }
  /// For several waits of one call.
  Patience patience_from_now(Seconds given) const {
    Patience made = patience(given);
    made.since = std::chrono::steady_clock::now();
    return made;
  }
  Request request(TransferPtr transfer) const {
    Request made;
    made.endpoint_ = endpoint;
    made.transfer_ = std::move(transfer);
    made.deadline_ = deadline.load();
    return made;
  }

  Request request(std::shared_ptr<StartedCollective> collective) const {
    Request made;
    made.collective_ = std::move(collective);
    made.deadline_ = deadline.load();
    return made;
  }
  /// By the thread that calls collectives.
  StartedCollectives& started() {
    if (!started_) started_ = std::make_unique<StartedCollectives>(core);
    return *started_;
  }

  const std::shared_ptr<Endpoint> endpoint;
  CommunicatorCore core;
  std::atomic<double> deadline;  ///< Negative: none.

 private:
  std::unique_ptr<StartedCollectives> started_;
};

}  // namespace quadriga::message
