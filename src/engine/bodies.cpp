// SPDX-License-Identifier: BSD-3-Clause
// src/engine/bodies.cpp: what each thread runs at the moment.
#include "engine/bodies.h"

#include <utility>

namespace quadriga {
namespace {

thread_local Task* running_task = nullptr;
thread_local const Graph* running_graph = nullptr;

}  // namespace

Task* current_task(const Graph& graph) noexcept {
  return running_graph == &graph ? running_task : nullptr;
}

RunningTask::RunningTask(const Graph& graph, Task* task) noexcept
    : graph_(std::exchange(running_graph, &graph)), task_(std::exchange(running_task, task)) {}

RunningTask::~RunningTask() {
  running_graph = graph_;
  running_task = task_;
}

void run_body(Graph& graph, Task& task, const Kernel& body, const Arguments& arguments) {
  if (!task.codelet->submits) {
    body(arguments);
    return;
  }
  try {
    body(arguments);
  } catch (...) {
    graph.body_ended(task);
    throw;
  }
  graph.body_ended(task);
}

}  // namespace quadriga
