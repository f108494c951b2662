// SPDX-License-Identifier: BSD-3-Clause
// src/engine/circles.h: bodies that wait for what can't end before they do, also by way of bodies
// of other engines.
//
// Invariants
//   1. On the host's cores, what follows a running task, by edges or as its parent, doesn't end
//      before it: its slot and its edges stay, and may be looked at under the submission lock. Of
//      a task on a device, only those that enclose it are looked at.
//   2. A wait is noted before it is looked at, so that of bodies that wait in a circle the last one
//      sees it. Its body, and the graphs of both, stay for as long as it is noted.
//   3. Who holds the lock of the waits takes the submission locks of all graphs in them, in the
//      order of their addresses. Nobody else holds two.
#pragma once

#include <span>

#include "engine/bodies.h"
#include "graph/graph.h"

namespace quadriga {

/// While it lives, a body waits without a timeout until some tasks have ended.
class BodyWait {
 public:
  /// `running`: of this thread, on whatever engine; null: no body waits. Errors: unavailable if
  /// one of the graph's tasks can't end before the body has, or before one that waits for it.
  BodyWait(Graph& graph, const RunningTask* running, std::span<const TaskRef> awaited);
  ~BodyWait();
  BodyWait(const BodyWait&) = delete;
  BodyWait& operator=(const BodyWait&) = delete;

 private:
  bool is_noted_ = false;
};

}  // namespace quadriga
