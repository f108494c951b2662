// SPDX-License-Identifier: BSD-3-Clause
// src/engine/waits.h: how a calling thread waits for tasks and copies of an engine: never for its
// own access on the host, and with a deadline that says what is late.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/executor.h"
#include "engine/open_holds.h"

namespace quadriga {

/// Has no state of its own: any thread may call anything. Nobody holds a lock meanwhile.
class Waits {
 public:
  Waits(const Graph& graph, Executor& executor, const OpenHolds& holds)
      : graph_(graph), executor_(executor), holds_(holds) {}

  /// Of a timeout in seconds; negative: never.
  Nanoseconds deadline_after(double timeout) const;
  /// Waits for a condition that follows from ends of tasks; throws deadline with the state
  /// of things.
  void until(const std::function<bool()>& condition, Nanoseconds deadline,
             const std::string& what) const;
  /// Until these have ended. Errors: deadline; unavailable if one waits for this thread.
  void until_ended(std::span<const TaskRef> tasks, Nanoseconds deadline) const;
  /// Until what is written is home.
  void until_home(std::span<Datum* const> written, Nanoseconds deadline) const;
  [[noreturn]] void fail_late(const std::string& what) const;

 private:
  const Graph& graph_;
  Executor& executor_;
  const OpenHolds& holds_;
};

}  // namespace quadriga
