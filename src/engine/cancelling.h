// SPDX-License-Identifier: BSD-3-Clause
// src/engine/cancelling.h: ends what hasn't started, and leaves data as a wait would.
//
// Invariants
//   1. turn_ is held by a call from outside of tasks until it returns, before any other lock of
//      the engine's: whoever returns finds the data as promised, not on another one's way.
//   2. mutex_ guards `calls_`: of calls that go on at once, those inside of tasks among them, the
//      first sets the flags of executor and messages, and the last takes them back.
//   3. What is submitted while the flags are set is cancelled, too, so that nothing but running
//      bodies and copies is waited for.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "engine/reductions.h"
#include "engine/renaming.h"
#include "engine/waits.h"
#include "graph/failures.h"

namespace quadriga {

/// Any thread may call anything.
class Cancelling {
 public:
  struct Parts {
    Graph& graph;
    Executor& executor;
    Failures& failures;
    Reductions& reductions;
    Renaming& renaming;
    const Waits& waits;
    const std::atomic<bool>& is_ending;  ///< Nobody will look at the data any more.
    std::function<void(bool)> messages;  ///< While on, no message of a task goes on.
  };
  explicit Cancelling(Parts parts) : parts_(std::move(parts)) {}

  /// Cancels all tasks but those around this call, and waits until they have ended: in a body,
  /// those that its task, `inside`, submitted.
  void all(Task* inside);
  /// The same without its turn, in an engine that is about to end.
  void without_turn(Task* inside);

 private:
  void begin();
  void end();
  void settle();
  void settle_renamed();

  const Parts parts_;
  std::mutex turn_;
  std::mutex mutex_;
  int calls_ = 0;
};

}  // namespace quadriga
