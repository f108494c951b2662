// SPDX-License-Identifier: BSD-3-Clause
// src/engine/task_bodies.h: runs the variants of issued tasks, on a backend's threads.
#pragma once

#include "engine/executor.h"
#include "engine/promises.h"
#include "graph/graph.h"
#include "schedule/schedule_listener.h"

namespace quadriga {

class TaskBodies final : public TaskRunner {
 public:
  /// `executor`: is told of promises that were kept. `waits`: bodies that may wait get threads of
  /// their own, at most so many; else they run at once, as under the virtual clock.
  TaskBodies(Executor& executor, Graph& graph, const Machine& machine, bool waits,
             std::size_t threads)
      : executor_(executor), graph_(graph), machine_(machine), waits_(waits), threads_(threads) {}

  void run(const PlannedTask& planned, const Arguments& arguments) override;

 private:
  void run_variant(const PlannedTask& planned, const Arguments& arguments);

  Executor& executor_;
  Graph& graph_;
  const Machine& machine_;
  const bool waits_;
  BlockingThreads threads_;
};

}  // namespace quadriga
