// SPDX-License-Identifier: BSD-3-Clause
// src/engine/commuting.h: mutual exclusion in any order: of the tasks that commute on a datum, or
// reduce into it, one runs at a time.
//
// Invariants
//   1. At most one running task holds `busy` of a datum; a task that fails to take all that it
//      needs holds none and is blocked until a holder releases one.
//   2. mutex_ guards `blocked_`. A task that is about to block counts itself in `count_` first and
//      tries once more; a releasing task checks `count_` afterwards: so no task is missed.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "graph/task.h"

namespace quadriga {

class Commuting {
 public:
  /// False: it can't run now, and release() of another task returns it.
  bool take(Task& task);
  /// The task has run; those that may try again are returned.
  std::vector<Task*> release(Task& task);

 private:
  static bool try_all(Task& task);

  std::mutex mutex_;
  std::vector<Task*> blocked_;
  std::atomic<int> count_{0};
};

}  // namespace quadriga
