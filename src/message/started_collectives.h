// SPDX-License-Identifier: BSD-3-Clause
// src/message/started_collectives.h: collectives of a communicator that run while their callers do
// something else.
//
// Invariants
//   1. One thread carries them out, in the order in which they were started, which is the same on
//      all ranks. Each is the call that blocks, with its agreement and its errors.
//   2. They have contexts of their own: they never meet collectives that are called meanwhile.
//   3. Whoever waits for one has a deadline and an interrupt; it ends itself by what ends the call,
//      by the loss of a rank or by the communicator's end, which cancels it on all ranks.
//   4. mutex_ guards what follows it; it isn't held while a collective runs.
//   5. In a child after fork() there is no such thread: calls throw.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "message/communicator.h"

namespace quadriga::message {

/// One of them. Any thread may ask.
class StartedCollective {
 public:
  using Call = std::function<void(CommunicatorCore& core)>;
  StartedCollective(CallKind kind, const CommunicatorCore& core, Call call);

  /// Errors: what ended it; deadline, saying what each rank waits for: it goes on.
  void wait(const Patience& patience) const;
  /// Whether it has ended. Errors: what ended it.
  bool test() const;

 private:
  friend class StartedCollectives;
  bool has_ended() const;
  void end(std::exception_ptr error) noexcept;

  const CallKind kind_;
  const std::shared_ptr<Endpoint> endpoint_;
  const std::shared_ptr<const Group> group_;
  const int owner_;
  const Call call_;  ///< It may keep what the call uses.
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  bool is_over_ = false;
  std::exception_ptr error_;
};

class StartedCollectives {
 public:
  explicit StartedCollectives(const CommunicatorCore& communicator);
  /// Cancels those that haven't ended, on all ranks.
  ~StartedCollectives();
  StartedCollectives(const StartedCollectives&) = delete;
  StartedCollectives& operator=(const StartedCollectives&) = delete;

  /// `call` gets the communicator of these collectives. Errors: unavailable.
  std::shared_ptr<StartedCollective> start(CallKind kind, StartedCollective::Call call);
  /// This rank can't take part in one: it raises on the others.
  void refuse(CallKind kind, const std::string& why);
  /// As CommunicatorCore::force(), of those that are started from now on.
  void force(const TreeOptions& options);

 private:
  void run();

  CommunicatorCore core_;
  const int owner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<StartedCollective>> queue_;
  bool is_stopping_ = false;
  std::thread thread_;  ///< Since the first was started.
};

}  // namespace quadriga::message
