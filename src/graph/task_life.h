// SPDX-License-Identifier: BSD-3-Clause
// src/graph/task_life.h: what becomes of a task, whichever executor runs it: why it doesn't run,
// what is invalid after a failure, and whom its end tells.
//
// Invariants
//   1. A task ends once: by whoever takes the last of its `children`, which count its body, the
//      promise that the body left (host_pool.h), and the tasks that it submitted.
//   2. Once its edges are dropped and its slot is given back, the slot may be another task's: what
//      the end needs of it is read before.
//   3. Ends are counted before the group and the parent hear of them, so whoever these wake finds
//      the task among those that have ended.
#pragma once

#include <exception>
#include <utility>

#include "graph/graph.h"

namespace quadriga {

/// What a task ends with that was cancelled before it started.
std::exception_ptr work_cancelled();

/// Poisons what the task should have written.
void poison(Task& task) noexcept;
/// The first poisoned operand that the task would read; null if there is none.
const Datum* poisoned_operand(const Task& task) noexcept;
/// Whether a task would read data without a home that no task before it writes.
inline bool lacks_content(const OperandSlot& slot) noexcept {
  return slot.precedes_writes && reads(slot.access) && slot.datum->buffer && !slot.datum->partial;
}
/// What such a task ends with.
std::exception_ptr no_content();
/// What says that data's content is lost, and why, as the task that should have written it failed;
/// null: that isn't known.
std::exception_ptr content_lost(const std::exception_ptr& failure);
/// A failed task should have written it, or, `lacking`, brought aliases home for it.
inline void lose(Datum& datum, bool lacking = false) noexcept {
  datum.lacking.store(lacking, std::memory_order_relaxed);
  datum.poisoned.store(true, std::memory_order_release);
}
/// Its old content, invalid or not, is overwritten.
inline void overwritten(Datum& datum) noexcept {
  datum.poisoned.store(false, std::memory_order_release);
}

/// The task's body has ended, or one that it submitted; true for the last, which ends the task.
/// Nobody but the body adds children, so none comes after the last.
inline bool leave(Task& task) noexcept {
  if (task.children.load(std::memory_order_acquire) != 1)
    return task.children.fetch_sub(1, std::memory_order_acq_rel) == 1;
  task.children.store(0, std::memory_order_relaxed);
  return true;
}

/// Gives one slot back, of a task that wasn't linked or of a host's access that has ended.
inline void give_back(Graph& graph, Task* task) {
  FreeSlots slots;
  graph.release(task, slots);
  graph.flush(slots);
}

/// Ends a task: drops its edges (see Graph::ended() for `issued` and `ready`), gives its slot back,
/// counts the end by count(), and tells its group. Returns its parent if that ends by it, else
/// null.
template <class Ready, class Count>
Task* end_task(Graph& graph, FreeSlots& slots, Task& task, Edge* issued, Ready&& ready,
               Count&& count) {
  Task* const parent = task.parent();
  TaskGroup* const group = std::exchange(task.group, nullptr);
  graph.ended(task, issued, std::forward<Ready>(ready));
  graph.release(&task, slots);
  count();
  if (group) group->task_ended();
  return parent && leave(*parent) ? parent : nullptr;
}

}  // namespace quadriga
