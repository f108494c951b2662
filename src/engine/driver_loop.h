// SPDX-License-Identifier: BSD-3-Clause
// src/engine/driver_loop.h: one step of driving: messages in, decisions, completions, and what
// follows from each.
//
// Knows no thread and no lock: whoever drives calls it, one at a time.
//
// Invariants
//   1. Messages are taken in order, before anything is decided; requests after the messages that
//      tell of the data which they are about.
//   2. What the scheduler's listener noted is settled after each of its functions has returned: the
//      graph is told, consequences reach the scheduler as events, and the issuers get what was
//      decided.
//   3. Waiters are signalled after each batch of ends.
//   4. Who knows that a task has ended finds has_lingering() set if that task left anything.
#pragma once

#include <atomic>
#include <vector>

#include "device/backend.h"
#include "engine/inbox.h"
#include "engine/issuers.h"
#include "engine/releases.h"
#include "engine/run_record.h"
#include "engine/waiters.h"
#include "memory/link_tokens.h"
#include "schedule/scheduler.h"

namespace quadriga {

class DriverLoop {
 public:
  struct Parts {
    const Backend& clock;
    Instructions& instructions;
    Inbox& inbox;
    Releases& releases;
    Waiters& waiters;
    RunRecord& record;
    Scheduler& scheduler;
    Issuers& issuers;
  };
  /// `is_virtual`: time passes only while something is in flight.
  DriverLoop(const Parts& parts, bool is_virtual)
      : parts_(parts), is_virtual_(is_virtual), completions_(ends_at_once) {}

  /// Takes messages and requests, decides, then takes completions until the deadline. False if
  /// nothing happened and nothing is in flight.
  bool step(Nanoseconds deadline);
  void take_messages();
  /// Tells the graph what happened, and lets the issuers have what was decided.
  void settle();
  /// While set, tasks that have not started end cancelled; known from the next messages on. Any
  /// thread.
  void cancel(bool on) noexcept { cancels_.store(on, std::memory_order_release); }
  /// Whether tasks whose ends the caller knows of may have left content on devices. Any thread.
  bool has_lingering() const noexcept { return has_lingering_.load(std::memory_order_acquire); }

 private:
  void take(const Message& message);
  Cost cost_of(const Task& task);
  /// False if none was answered.
  bool run_requests();
  bool decide();
  std::size_t take_completions(Nanoseconds deadline);

  const Parts parts_;
  const bool is_virtual_;
  std::atomic<bool> cancels_{false};
  std::atomic<bool> has_lingering_{false};
  bool is_cancelled_ = false;  ///< As the scheduler was told last.
  std::vector<Completion> completions_;
  std::vector<Message> taken_;
  std::vector<View> views_;  ///< Scratch of cost_of().
};

}  // namespace quadriga
