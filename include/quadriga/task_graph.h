// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/task_graph.h: graphs that are given as functions of task indices.
#pragma once

#include <quadriga/engine.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace quadriga {

/// A task's indices: first the step, then those of its class.
using TaskIndices = std::span<const std::int64_t>;

/// From begin to before end; none if end isn't greater.
struct TaskRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Tasks of one kind, one for each step and tuple of indices.
struct TaskClass {
  const Codelet* codelet = nullptr;  ///< Must outlive the tasks.
  /// The range of each further index, from those before it. None: one task a step.
  std::vector<std::function<TaskRange(TaskIndices)>> ranges = {};
  /// Appends the operands of a task.
  std::function<void(TaskIndices, std::vector<Operand>&)> operands = {};
  /// Priority, owner and so on. Default: none of them.
  std::function<SubmitOptions(TaskIndices)> options = {};
  /// Appends the bytes of a task's parameters.
  std::function<void(TaskIndices, std::vector<std::byte>&)> params = {};
};

/// Data by row and column, such as the tiles of a matrix.
class DataGrid {
 public:
  /// Errors: invalid_argument if a number is negative.
  DataGrid(std::int64_t rows, std::int64_t cols);
  /// Errors: invalid_argument naming the place and the shape if it isn't within the grid.
  Data& operator()(std::int64_t row, std::int64_t col);
  const Data& operator()(std::int64_t row, std::int64_t col) const;

 private:
  std::size_t place(std::int64_t row, std::int64_t col) const;
  std::int64_t rows_, cols_;
  std::vector<Data> data_;
};

/// A graph that is never in memory as a whole: its tasks are made in the order of the steps, in a
/// step class by class as they were added, in a class by indices, the last one fastest. Tasks that
/// access the same data follow each other in this order, so there are no cycles.
///
/// Source:  parameterised task graphs (Cosnard, Loi, 1995), by their sequential order.
class TaskGraph {
 public:
  /// Errors: invalid_argument if there are fewer than no steps.
  explicit TaskGraph(std::int64_t steps);
  /// Errors: invalid_argument naming what is missing: the codelet, the operands or a range.
  void add(TaskClass tasks);
  /// Submits the tasks, and waits while the engine's window is full: at most so many tasks exist.
  /// Returns how many were submitted: all, unless `stop`, which is asked before each, says so once.
  /// Failures and cancellations are those of the tasks.
  ///
  /// Errors:  what Engine::submit() and the functions throw; an Error names the task's codelet and
  ///          indices. The tasks before are submitted.
  std::int64_t submit(Engine& engine, const std::function<bool()>& stop = {}) const;

 private:
  std::int64_t steps_;
  std::vector<TaskClass> classes_;
};

}  // namespace quadriga
