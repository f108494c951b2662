// SPDX-License-Identifier: BSD-3-Clause
// bench/ends.h: how long after a kernel's end the engine knows of it.
#pragma once

#include <quadriga/codelet.h>
#include <quadriga/engine.h>

#include <atomic>

#include "graph/group.h"
#include "settings.h"

namespace quadriga::bench {

/// A task alone in its group, which tells that the driver has taken the task's end.
struct EndedTask {
  EndedTask() {
    group.on_end = [this] { told = now(); };
  }
  /// What its kernel ends with.
  void end_kernel() noexcept;
  static double now();

  TaskGroup group;
  std::atomic<bool> is_closed{false};  ///< Its group is: the end of the task is the group's.
  double seconds = 0;                  ///< That its kernel takes.
  double ended = 0;                    ///< When its kernel has.
  std::atomic<double> told{0};
};

/// The one that a body is called for.
EndedTask& ended_task(const Arguments& arguments);

/// Prints a line for tasks without work, many at once, and one for tasks that are waited for one by
/// one: microseconds from the end of a kernel until the driver has taken it and passed it on; and
/// until the call that waits has returned. `body` is called with the address of an EndedTask as its
/// parameters, and has end_kernel() called when what it queued has ended.
void measure_ends(const Settings& settings, const EngineOptions& options, const Codelet& body);

}  // namespace quadriga::bench
