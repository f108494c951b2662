// SPDX-License-Identifier: BSD-3-Clause
// src/engine/releases.h: reports issued and ended tasks to the graph, and the successors that
// become ready to the scheduler.
//
// Belongs to one thread at a time, except count(). Knows no clock and no device.
//
// Invariants
//   1. Notes are settled in order; consequences may be noted meanwhile, and are settled by the same
//      call.
//   2. A task is released once: when it has left the schedule, its children have ended, and no
//      predecessor is left. A predecessor may outlast it, such as one that reads another replica of
//      what the task wrote: it may be slower, and holds edges that lie in its successors.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/inbox.h"
#include "graph/graph.h"
#include "schedule/scheduler.h"

namespace quadriga {

class Releases {
 public:
  Releases(Graph& graph, Inbox& inbox) : graph_(graph), inbox_(inbox) {}

  void issued(PlannedTask& planned) { noted_.push_back({&planned, {}}); }
  void ended(const EndedTask& ended) { noted_.push_back({nullptr, ended}); }
  void settle(Scheduler& scheduler);
  /// An access of the host's has ended, see Graph::link_hold().
  void end_hold(Scheduler& scheduler, Task& hold);
  /// Gives slots of released tasks back to the graph.
  void flush() { graph_.flush(free_); }

  /// Tasks that have left the schedule.
  std::uint64_t left() const noexcept { return left_; }
  /// Tasks that were released. Any thread.
  std::uint64_t count() const noexcept { return released_.load(std::memory_order_acquire); }

 private:
  /// A task that was issued, or one that has left the schedule.
  struct Note {
    PlannedTask* issued = nullptr;
    EndedTask ended;
  };
  void release_successors(Scheduler& scheduler, PlannedTask& planned);
  void task_ended(Scheduler& scheduler, const EndedTask& ended);
  /// A successor of an ended task lacks nothing that isn't issued; `late` are those that ran before
  /// that one was done.
  void successor_ready(Scheduler& scheduler, Task& successor, std::uint64_t pending,
                       const EndedTask& ended, std::vector<Task*>& late);
  void release(Scheduler& scheduler, const EndedTask& ended);
  void release_waiting(Scheduler& scheduler, Task& task);
  void post_ready(Task& task);

  Graph& graph_;
  Inbox& inbox_;
  std::vector<Note> noted_;
  std::map<Task*, EndedTask> waiting_;  ///< That have left the schedule, but aren't released.
  FreeSlots free_;
  std::uint64_t left_ = 0;
  std::atomic<std::uint64_t> released_{0};
};

}  // namespace quadriga
