// SPDX-License-Identifier: BSD-3-Clause
// src/engine/reductions.h: partial results of operands of mode reduce, and the tasks that combine
// them.
//
// Consecutive accesses of mode reduce in one domain of submission that share init and combine form
// a group. While it is open its tasks add to partial results, each to that of the place where it
// runs, or in place if there is none. The access that ends the group submits one task per partial
// result that adds it to the target: an update, which thereby follows all members of the group.
//
// Invariants
//   1. Reductions and the groups in them are guarded by the submission lock; `partials` doesn't
//      change once it was made, and executors read it through Task::reduction().
//   2. A set of partial results serves one domain at a time: its groups follow each other, since
//      each starts behind the tasks that combined the one before.
//   3. Between groups no partial result is filled.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/executor.h"
#include "graph/graph.h"
#include "graph/partials.h"

namespace quadriga {

class Reductions {
 public:
  Reductions(Graph& graph, Executor& executor) : graph_(graph), executor_(executor) {}

  /// Throws invalid_argument if a codelet's init and combine aren't what they should be.
  static void check(const Codelet& codelet);
  /// Under the submission lock, before the task is linked: ends the groups that it doesn't belong
  /// to and joins those that it does.
  void before(Task& task) {
    if (open_ > 0 || (task.has_commute && task.codelet->combine)) [[unlikely]]
      prepare(task);
  }
  /// Ends the group of a datum, or all groups, of the children of `parent` or of those without one.
  void end(Datum& datum, Task* parent);
  void end_all(Task* parent);
  /// Adds the partial results of data that are removed, whose tasks have ended; `kept` holds them.
  void collect(Datum& datum, std::vector<Datum*>& out,
               std::vector<std::shared_ptr<Reduction>>& kept);

 private:
  void prepare(Task& task);
  void join(History& history, Task& task, int operand);
  std::shared_ptr<Reduction> make(Datum& target, const std::vector<bool>& places);
  void end_group(Datum& datum, Reduction& reduction, Task* parent);
  void submit(const Codelet& codelet, Datum& target, Datum& partial, std::int32_t priority,
              Task* parent);
  static History* find_history(Datum& datum, Task* parent);
  static History& history_of(Datum& datum, Task* parent);
  std::vector<Datum*>& reduced(Task* parent);

  Graph& graph_;
  Executor& executor_;
  std::size_t open_ = 0;         ///< Groups that are open, in all domains.
  std::vector<Datum*> reduced_;  ///< Data with an open group outside all tasks, in order.
};

}  // namespace quadriga
