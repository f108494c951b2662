// SPDX-License-Identifier: BSD-3-Clause
// src/engine/occupied.h: which engines have bodies that would wait for what this thread waits for.
//
// A body that waits for work on its own engine keeps a thread that this work may need. So may a
// body that waits for work on another engine, if a body of that waits for the first one.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace quadriga {

/// Engines, by their graphs.
using Engines = std::vector<const Graph*>;

/// The engines of which this thread's body, or one that waits for it, keeps a thread that others of
/// their bodies need. Bodies that block have threads of their own, and keep none.
Engines occupied_engines();
/// The innermost task of the graph whose body this thread is in, perhaps in another engine's body
/// inside of it; null outside.
Task* task_around(const Graph& graph) noexcept;

/// While it lives, what this thread runs is waited for by bodies of some engines, which outlive it.
class WaitedFor {
 public:
  explicit WaitedFor(const Engines& engines) noexcept;
  ~WaitedFor();
  WaitedFor(const WaitedFor&) = delete;
  WaitedFor& operator=(const WaitedFor&) = delete;

 private:
  const Engines* const before_;
};

}  // namespace quadriga
