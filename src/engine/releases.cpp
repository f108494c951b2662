// SPDX-License-Identifier: BSD-3-Clause
// src/engine/releases.cpp: from a task's end to its successors.
#include "engine/releases.h"

#include <utility>

namespace quadriga {

void Releases::settle(Scheduler& scheduler) {
  for (std::size_t i = 0; i < noted_.size(); ++i) {
    const Note note = noted_[i];
    if (note.issued)
      release_successors(scheduler, *note.issued);
    else
      task_ended(scheduler, note.ended);
  }
  noted_.clear();
}

/// The message that it was submitted is still to be read.
void Releases::post_ready(Task& task) {
  inbox_.post({.kind = Message::Kind::ready, .task = &task, .id = task.id});
}

/// Successors on devices may be queued behind an issued task.
void Releases::release_successors(Scheduler& scheduler, PlannedTask& planned) {
  const EndedTask by{.device = planned.device};
  planned.released = Graph::issued(*planned.task, [&](Task& successor) {
    if (successor.planned)
      scheduler.ready(successor, Predecessors::issued, &by);
    else
      post_ready(successor);
  });
}

void Releases::task_ended(Scheduler& scheduler, const EndedTask& ended) {
  ++left_;
  Task& task = *ended.task;
  const bool childless = task.children.fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (childless && task.pending.load(std::memory_order_acquire) == 0)
    release(scheduler, ended);
  else
    waiting_[&task] = ended;
}

/// The task's successors learn that it is done; `late` are those that ran before it was.
void Releases::drop_edges(Scheduler& scheduler, Task& task, const EndedTask& ended,
                          std::vector<Task*>& late) {
  graph_.ended(task, ended.released, [&](Task& successor, std::uint64_t pending) {
    if (successor.planned)
      scheduler.ready(successor, pending == 0 ? Predecessors::done : Predecessors::issued, &ended);
    else if (!waiting_.contains(&successor))
      post_ready(successor);
    else if (pending == 0)
      late.push_back(&successor);
  });
}

void Releases::end_hold(Scheduler& scheduler, Task& hold) {
  std::vector<Task*> late;
  drop_edges(scheduler, hold, {}, late);
  for (Task* const waiting : late) release_waiting(scheduler, *waiting);
}

void Releases::release(Scheduler& scheduler, const EndedTask& ended) {
  Task& task = *ended.task;
  Task* const parent = task.parent();
  TaskGroup* const group = std::exchange(task.group, nullptr);
  std::vector<Task*> late;
  drop_edges(scheduler, task, ended, late);
  graph_.release(&task, free_);
  released_.fetch_add(1, std::memory_order_release);
  if (group) group->task_ended();
  if (parent && parent->children.fetch_sub(1, std::memory_order_acq_rel) == 1)
    late.push_back(parent);
  for (Task* const waiting : late) release_waiting(scheduler, *waiting);
}

void Releases::release_waiting(Scheduler& scheduler, Task& task) {
  const auto found = waiting_.find(&task);
  if (found == waiting_.end() || task.children.load(std::memory_order_acquire) != 0 ||
      task.pending.load(std::memory_order_acquire) != 0)
    return;
  const EndedTask ended = found->second;
  waiting_.erase(found);
  release(scheduler, ended);
}

}  // namespace quadriga
