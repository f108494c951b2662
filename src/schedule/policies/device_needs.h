// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/device_needs.h: what a device lacks for the waiting tasks that it looks at,
// kept from one pull to the next.
//
// Invariants
//   1. At most `most_looked` tasks are seen by a look at all that wait: first those that share
//      tiles with what the device has got, then by urgency. Between two such looks only what has
//      changed is looked at: what came to wait, and tasks whose tiles came to the device.
//   2. That a tile has been evicted isn't told: who chooses a task asks is_right(), and looks at
//      all again if it isn't.
#pragma once

#include <quadriga/policy.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/policies/waiting_tasks.h"

namespace quadriga {

/// What a device lacks for a waiting task.
struct LackingTask {
  Urgency place;
  TaskReference task;
  double least_seconds = 0;  ///< On the quickest device.
  double seconds = 0;        ///< On this one.
  std::size_t tiles = 0;     ///< How many are missing.
  std::uint32_t tile = 0;    ///< The last of them.
  double bytes = 0;          ///< To be copied; of what is updated also those back.
};

class DeviceNeeds {
 public:
  /// `tasks` outlives it.
  explicit DeviceNeeds(WaitingTasks& tasks) : tasks_(tasks) {}

  /// A task has come to wait.
  void came(const TaskReference& task);
  /// A tile comes to the device with what it has got.
  void brings(std::uint32_t tile);
  void brings(std::span<const OperandView> operands);
  /// By urgency; valid until something else is called.
  std::span<const LackingTask> update(const PullQuestion& question);
  /// The same by a look at all that wait.
  std::span<const LackingTask> look(const PullQuestion& question);
  /// Whether all that the task needs is still there, or missing, as it was.
  bool is_right(const LackingTask& need, const PullQuestion& question) const {
    return find(need.task, question).tiles == need.tiles;
  }
  /// Whether there was no task beyond those that it looked at.
  bool has_seen_all() const noexcept { return is_whole_; }

 private:
  static constexpr std::size_t most_looked = 128;
  /// So many tasks may have left or come before the device looks at all anew.
  static constexpr std::size_t most_changed = most_looked / 4;
  static constexpr std::size_t unknown = SIZE_MAX;

  LackingTask find(const TaskReference& task, const PullQuestion& question) const;
  void add_news(const PullQuestion& question);
  bool look_at(const TaskReference& task, const PullQuestion& question);

  WaitingTasks& tasks_;
  std::vector<LackingTask> needs_;  ///< By place.
  bool has_unknown_ = false;        ///< Of some of them the number of tiles.
  std::vector<TaskReference> news_;
  std::size_t changed_ = most_changed + 1;  ///< Tasks that have left or come since it looked.
  bool is_whole_ = false;                   ///< Nothing waited that it hasn't seen.
};

}  // namespace quadriga
