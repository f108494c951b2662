// SPDX-License-Identifier: BSD-3-Clause
// src/engine/host_bodies.h: runs the bodies of ready tasks on the user's memory, or fails those
// that can't run.
//
// Any thread, each task by one. Knows neither queues nor what follows a task.
//
// Invariants
//   1. When a task's end is known, its failure is recorded, and what it should have written is
//      poisoned.
//   2. A detached task counts its promise among its children (task_life.h); its end is told by
//      Executor::kept(), which may come before run() returns.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "engine/executor.h"
#include "engine/promises.h"
#include "graph/failures.h"
#include "graph/graph.h"

namespace quadriga {

class HostBodies {
 public:
  /// `device`: its name, for failures. `blocking_threads`: for bodies that may wait, at most.
  HostBodies(Executor& executor, Graph& graph, Failures& failures, std::string device,
             std::size_t blocking_threads)
      : executor_(executor),
        graph_(graph),
        failures_(failures),
        device_(std::move(device)),
        blocking_(blocking_threads) {}

  /// False if the body didn't run: work was cancelled, or an operand has no valid content.
  bool run(Task& task);
  /// `error` null: the producer of an operand failed.
  void fail(Task& task, std::exception_ptr error);

 private:
  /// The number of a task that failed and should have written what this one would read; aliases
  /// count, for all are one memory here.
  std::optional<std::uint64_t> lacks_written(const Task& task) const;
  /// Its operands that are written anew are valid, and so are aliases that lie within them.
  void make_valid(Task& task);
  /// False.
  bool refuse(Task& task, std::exception_ptr error);
  void call(Task& task, const Arguments& arguments);

  Executor& executor_;
  Graph& graph_;
  Failures& failures_;
  const std::string device_;
  BlockingThreads blocking_;
};

}  // namespace quadriga
