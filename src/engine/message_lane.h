// SPDX-License-Identifier: BSD-3-Clause
// src/engine/message_lane.h: a communicator as tasks use it: who starts next.
//
// Invariants
//   1. mutex_ guards the orders and those that wait in them. It isn't held while a message starts.
//   2. One thread at a time starts messages (`starting_`), in the order that StartOrder says; what
//      becomes ready meanwhile is started by the same thread.
//   3. Collectives of tasks have contexts of their own, so that they never meet those of calls. One
//      engine's sequence orders them; another engine may have them once that one has ended.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "engine/message_task.h"
#include "engine/start_order.h"

namespace quadriga {

class MessageLane {
 public:
  explicit MessageLane(const message::CommunicatorCore& communicator);

  const message::CommunicatorCore& messages() const noexcept { return messages_; }
  /// Used by the one task of the sequence that runs.
  message::CommunicatorCore& collectives() noexcept { return collectives_; }

  /// It was submitted: later ones may have to wait for it. Sets its number.
  void enter(MessageTask& task);
  /// Its data are ready: it starts now, or when its turn has come.
  void ready(const MessageTaskPtr& task);
  /// It will not start; false if it has started. start() must follow, by a thread that may.
  bool leave(const MessageTask& task);
  /// Starts all whose turn has come. Not by a thread that others wait for.
  void start();

  /// The sequence of an engine's collectives: `make` makes it when the engine has none yet.
  /// Errors: invalid_argument while another engine has collectives of this communicator.
  template <class Make>
  Sequence sequence_for(const std::shared_ptr<void>& engine, const Make& make) {
    const std::lock_guard lock(mutex_);
    const auto owner = owner_.lock();
    if (owner && owner != engine) refuse_second_engine();
    if (!owner) {
      sequence_ = make();
      owner_ = engine;
    }
    return sequence_;
  }

 private:
  [[noreturn]] static void refuse_second_engine();
  StartOrder& order_of(const MessageTask& task) noexcept {
    return task.sends() ? sends_ : receives_;
  }

  const message::CommunicatorCore messages_;
  message::CommunicatorCore collectives_;
  std::mutex mutex_;  ///< Guards the members below.
  StartOrder sends_{StartOrder::Of::sends};
  StartOrder receives_{StartOrder::Of::receives};
  std::map<std::uint64_t, MessageTaskPtr> sends_held_;
  std::map<std::uint64_t, MessageTaskPtr> receives_held_;
  bool starting_ = false;
  std::weak_ptr<void> owner_;
  Sequence sequence_;
};

}  // namespace quadriga
