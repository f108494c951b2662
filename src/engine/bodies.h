// SPDX-License-Identifier: BSD-3-Clause
// src/engine/bodies.h: runs the bodies of tasks, and knows which thread runs which task.
#pragma once

#include "graph/graph.h"

namespace quadriga {

/// The task of the graph whose body this thread runs; null outside.
Task* current_task(const Graph& graph) noexcept;

/// Runs the body of a task; children that it submits leave nothing to combine.
void run_body(Graph& graph, Task& task, const Kernel& body, const Arguments& arguments);

/// While it lives, this thread runs the body of a task. A body may use another engine.
class RunningTask {
 public:
  RunningTask(const Graph& graph, Task* task) noexcept;
  ~RunningTask();
  RunningTask(const RunningTask&) = delete;
  RunningTask& operator=(const RunningTask&) = delete;

 private:
  const Graph* graph_;
  Task* task_;
};

}  // namespace quadriga
