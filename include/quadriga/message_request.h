// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/message_request.h: sends and receives that are under way: single ones, plans.
#pragma once

#include <quadriga/message_buffer.h>
#include <quadriga/message_types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace quadriga::message {

class Endpoint;
class ExchangeTransfers;
class StartedCollective;
struct MessageTransfer;

/// Seconds that a call may take; nothing: as long as the communicator's deadline says.
using Seconds = std::optional<double>;

/// A send, a receive or a collective that has been started. It goes on when this object ends; its
/// memory must live, and stay as it is, until it has ended. Copies are the same one; any thread may
/// wait.
class Request {
 public:
  /// One that has ended.
  Request() = default;
  /// Waits until it has ended. A collective has no source and tag.
  /// Errors: what ended it; deadline: it goes on.
  Status wait(Seconds deadline = {}) const;
  /// Whether it has ended. Errors: what ended it.
  bool test() const;
  /// Withdraws it; false if it has ended, or is a collective.
  bool cancel() const;

 private:
  friend class Communicator;
  Status wait_since(std::chrono::steady_clock::time_point begin, Seconds deadline) const;
  friend std::vector<Status> waitall(std::span<const Request>, Seconds);
  std::shared_ptr<Endpoint> endpoint_;
  std::shared_ptr<MessageTransfer> transfer_;
  std::shared_ptr<StartedCollective> collective_;
  double deadline_ = -1;  ///< Negative: none.
};

/// Waits for all, `deadline` seconds for all together. Errors: those of the first that has one.
std::vector<Status> waitall(std::span<const Request> requests, Seconds deadline = {});

/// A send and a receive of a plan.
struct PlannedSend {
  SendBuffer from;
  int destination = 0;
  int tag = 0;
};
struct PlannedReceive {
  ReceiveBuffer into;
  int source = any_source;
  int tag = any_tag;
};

/// An exchange set up once and started often: a halo, say. Its memory is used between start() and
/// the end of wait(), and must live as long as the plan does. Copies are the same one; one thread
/// at a time.
class ExchangePlan {
 public:
  /// Starts all receives and sends. Errors: invalid_argument if the last start hasn't ended.
  void start() const;
  /// Waits until all have ended. Errors: of one that failed, the others being withdrawn; deadline:
  /// all go on.
  void wait(Seconds deadline = {}) const;
  /// Whether all have ended. Errors: as wait().
  bool test() const;
  /// Withdraws what hasn't ended; false if all has.
  bool cancel() const;
  /// What the receives got, in their order, once they have ended.
  std::vector<Status> received() const;

 private:
  friend class Communicator;
  std::shared_ptr<const ExchangeTransfers> transfers_;
  double deadline_ = -1;  ///< Negative: none.
};

}  // namespace quadriga::message
