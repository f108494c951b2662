// SPDX-License-Identifier: BSD-3-Clause
// src/engine/bodies.h: runs the bodies of tasks, and knows which thread runs which task.
#pragma once

#include <utility>

#include "graph/graph.h"

namespace quadriga {

/// Runs the body of a task that may submit others.
void run_submitting_body(Graph& graph, Task& task, const Kernel& body, const Arguments& arguments);

/// Runs the body of a task; children that it submits leave nothing to combine.
inline void run_body(Graph& graph, Task& task, const Kernel& body, const Arguments& arguments) {
  if (task.codelet->submits) [[unlikely]]
    run_submitting_body(graph, task, body, arguments);
  else
    body(arguments);
}

class RunningTask;
/// The innermost body that this thread runs; null outside of bodies.
extern thread_local constinit const RunningTask* running_here;

/// While it lives, this thread runs the body of a task. A body may use another engine.
class RunningTask {
 public:
  /// `keeps`: the thread is one of those that others of the engine's bodies need.
  RunningTask(const Graph& graph, Task* task, bool keeps = true) noexcept
      : outer_(std::exchange(running_here, this)), graph_(graph), task_(task), keeps_(keeps) {}
  ~RunningTask() { running_here = outer_; }
  RunningTask(const RunningTask&) = delete;
  RunningTask& operator=(const RunningTask&) = delete;

  const RunningTask* outer() const noexcept { return outer_; }
  const Graph& graph() const noexcept { return graph_; }
  /// Null: what runs is no task's.
  Task* task() const noexcept { return task_; }
  bool keeps_thread() const noexcept { return task_ && keeps_; }

 private:
  const RunningTask* const outer_;
  const Graph& graph_;
  Task* const task_;
  const bool keeps_;
};

/// The task of the graph whose body this thread runs; null outside.
inline Task* current_task(const Graph& graph) noexcept {
  return running_here && &running_here->graph() == &graph ? running_here->task() : nullptr;
}

}  // namespace quadriga
