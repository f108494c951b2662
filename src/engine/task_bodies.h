// SPDX-License-Identifier: BSD-3-Clause
// src/engine/task_bodies.h: runs the variants of issued tasks, on a backend's threads, or takes the
// tasks back.
//
// Invariants
//   1. An issued task is revoked if it is cancelled before its body is called, whether it lies in
//      an issuer's queue or in a stream's. Its operation keeps its place, so that events and waits
//      count as decided, and ends with the error; what relies on it doesn't run.
//   2. Of a gang the first task whose body would be called decides for all: all run or none does.
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
  bool is_revoked(const PlannedTask& planned) const noexcept;
  void run_variant(const PlannedTask& planned, const Arguments& arguments);

  Executor& executor_;
  Graph& graph_;
  const Machine& machine_;
  const bool waits_;
  BlockingThreads threads_;
};

}  // namespace quadriga
