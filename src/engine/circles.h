// SPDX-License-Identifier: BSD-3-Clause
// src/engine/circles.h: bodies on the host's cores that wait for what can't end before they do.
//
// Invariants
//   1. What follows a running task, by edges or as its parent, doesn't end before it: its slot and
//      its edges stay, and may be looked at under the submission lock.
//   2. A wait is noted before it is looked at, so that of bodies that wait in a circle the last one
//      sees it.
#pragma once

#include <span>

#include "graph/graph.h"

namespace quadriga {

/// While it lives, a body waits without a timeout until some tasks have ended.
class BodyWait {
 public:
  /// Null: no body waits. Errors: unavailable if one of the tasks can't end before the body's own
  /// has, or before that of a body that waits for it.
  BodyWait(Graph& graph, Task* inside, std::span<const TaskRef> awaited);
  ~BodyWait();
  BodyWait(const BodyWait&) = delete;
  BodyWait& operator=(const BodyWait&) = delete;

 private:
  const bool is_noted_;
};

}  // namespace quadriga
