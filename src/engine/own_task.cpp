// SPDX-License-Identifier: BSD-3-Clause
// src/engine/own_task.cpp: a slot for it, its edges, its way to the executor.
#include "engine/own_task.h"

namespace quadriga {

Task& own_task(Graph& graph, const Codelet& codelet, std::size_t operands, std::int32_t priority,
               Task* parent) {
  Task& task = *graph.allocate(true);
  task.codelet = &codelet;
  task.priority = priority;
  task.device = task.owner = no_device;
  task.has_commute = task.has_params = false;
  task.take_slots(operands);
  task.has_parent = parent != nullptr;
  if (parent) {
    task.parent_task = parent;
    parent->children.fetch_add(1, std::memory_order_relaxed);
  }
  task.children.store(1, std::memory_order_relaxed);
  return task;
}

std::uint64_t submit_own(Graph& graph, Executor& executor, Task& task) {
  const std::uint64_t predecessors = graph.link(task);
  const std::uint64_t id = task.id.load(std::memory_order_relaxed);
  executor.submitted(task);
  if ((Graph::unguard(task, predecessors) & 0xffffffff) == 0) executor.ready(task, id);
  return id;
}

}  // namespace quadriga
