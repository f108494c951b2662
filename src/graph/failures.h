// SPDX-License-Identifier: BSD-3-Clause
// src/graph/failures.h: the failures of tasks, kept until someone waits for them.
#pragma once

#include <quadriga/error.h>

#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "graph/number_ranges.h"
#include "graph/task.h"

namespace quadriga {

/// What a body throws that does nothing, as it was to use what came of a task that failed.
class LacksResult final : public std::exception {
 public:
  explicit LacksResult(std::uint64_t task) : task_(task) {}
  std::uint64_t task() const noexcept { return task_; }
  const char* what() const noexcept override { return "a task failed whose result it needs"; }

 private:
  std::uint64_t task_;
};

/// Any thread may call anything.
class Failures {
 public:
  /// Records why a task failed. `error` null, or LacksResult: it is cancelled or its result is
  /// invalid, since the producer of an operand, or of a result that it needs, failed.
  void record(Task& task, std::exception_ptr error, const std::string& device);
  /// Records a failure that no task is to blame for.
  void note(std::exception_ptr error);
  /// The first failure since the last call, else why a task did not run since then about which
  /// nobody asked; null if neither. Those of groups are theirs.
  std::exception_ptr take_first();
  /// The first failure of the group's tasks; null if none.
  std::exception_ptr of(const TaskGroup& group) const;
  /// What was noted last, unless take_first has told of it or one before; null if there is none.
  std::exception_ptr take_untold();
  /// Why the group has poisoned data without a failure: what was noted, and is taken by this, else
  /// what kept a task of its from running; null if neither.
  std::exception_ptr cause_of(const TaskGroup& group);
  /// Why this task failed; null if it didn't.
  std::exception_ptr of(std::uint64_t id) const;
  /// Whether this task failed, or didn't run.
  bool failed(std::uint64_t id) const;
  /// What failed first of all that made this task fail, or not run; empty if it isn't known. Tells
  /// nobody.
  std::string first_of(std::uint64_t id) const;
  bool any() const noexcept { return any_.load(std::memory_order_acquire); }
  std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  struct Known {
    std::exception_ptr error;
    std::shared_ptr<const std::string> first;  ///< What failed first, of which this one came.
  };
  std::shared_ptr<const std::string> first_of(const Task& task, std::uint64_t lacking) const;
  void forget_oldest();

  mutable std::mutex mutex_;  ///< Guards the members below.
  std::exception_ptr first_;
  std::exception_ptr note_;
  bool first_is_noted_ = false;             ///< `first_` is no task's.
  bool note_is_told_ = false;               ///< take_first has returned it, or one noted before it.
  std::map<std::uint64_t, Known> by_task_;  ///< The newest few thousand.
  mutable std::set<std::uint64_t> untold_;  ///< Of these, those that did not run, untold so far.
  NumberRanges failed_before_;              ///< Tasks before those, of which why isn't known.
  NumberRanges cancelled_before_;           ///< Of these, the ones that did not run.
  std::atomic<bool> any_{false};
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace quadriga
