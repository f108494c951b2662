// SPDX-License-Identifier: BSD-3-Clause
// src/engine/releases.cpp: from a task's end to its successors.
#include "engine/releases.h"

#include <utility>

#include "graph/covered_losses.h"
#include "graph/task_life.h"

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
  cover_losses(graph_, task, true);
  if (leave(task) && task.pending.load(std::memory_order_acquire) == 0)
    release(scheduler, ended);
  else
    waiting_[&task] = ended;
}

void Releases::successor_ready(Scheduler& scheduler, Task& successor, std::uint64_t pending,
                               const EndedTask& ended, std::vector<Task*>& late) {
  if (successor.planned)
    scheduler.ready(successor, pending == 0 ? Predecessors::done : Predecessors::issued, &ended);
  else if (!waiting_.contains(&successor))
    post_ready(successor);
  else if (pending == 0)
    late.push_back(&successor);
}

void Releases::end_hold(Scheduler& scheduler, Task& hold) {
  std::vector<Task*> late;
  graph_.ended(hold, nullptr, [&](Task& successor, std::uint64_t pending) {
    successor_ready(scheduler, successor, pending, {}, late);
  });
  for (Task* const waiting : late) release_waiting(scheduler, *waiting);
}

void Releases::release(Scheduler& scheduler, const EndedTask& ended) {
  std::vector<Task*> late;
  const auto ready = [&](Task& successor, std::uint64_t pending) {
    successor_ready(scheduler, successor, pending, ended, late);
  };
  const auto count = [&] { released_.fetch_add(1, std::memory_order_release); };
  if (Task* const parent = end_task(graph_, free_, *ended.task, ended.released, ready, count))
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
