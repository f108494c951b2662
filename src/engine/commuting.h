// SPDX-License-Identifier: BSD-3-Clause
// src/engine/commuting.h: tasks that exclude one another in any order: of those that commute on a
// datum, or reduce into it, one runs at a time.
//
// Invariants
//   1. `busy` of a datum is held by at most one running task; whoever fails to take all it needs
//      holds none and is blocked until some holder lets go.
//   2. mutex_ guards `blocked_`. Who is about to be blocked counts itself in `count_` first and
//      tries once more; who lets go looks at `count_` afterwards: none is left behind.
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
