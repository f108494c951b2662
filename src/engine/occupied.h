// SPDX-License-Identifier: BSD-3-Clause
// src/engine/occupied.h: which engines have bodies that would wait for what this thread waits for.
//
// A body that waits for work on its own engine keeps a thread that this work may need. So may a
// body that waits for work on another engine, if a body of that waits for the first one.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"

namespace quadriga {

class Engine;

/// Engines, by their graphs.
using Engines = std::vector<const Graph*>;

/// The engines of which this thread's body, or one that waits for it, keeps a thread that others of
/// their bodies need. Bodies that block have threads of their own, and keep none.
Engines occupied_engines();
/// The innermost task of the graph whose body this thread is in, perhaps in another engine's body
/// inside of it; null outside.
Task* task_around(const Graph& graph) noexcept;

/// Whether this thread may wait until tasks of the engine end that are none of its own task's.
/// False in bodies whose thread these may need. A body that blocks doesn't count in
/// EngineOptions::blocking_threads from now on.
bool may_await(const Engine& engine);
/// Whether this thread runs one of the engine's bodies, or one waits for what it runs.
bool runs_here(const Engine& engine);
/// Calls what submits tasks that are none of the task's whose body this thread runs.
void call_apart(const Engine& engine, const std::function<void()>& call);

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
