// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/endings.cpp: content, operands and records of tasks that end.
#include "schedule/endings.h"

#include <utility>

#include "graph/device_side.h"
#include "graph/task_life.h"

namespace quadriga {

void Endings::body_ended(PlannedTask& planned, const std::exception_ptr& error) {
  if (!error && is_detached(*planned.task->codelet) && !planned.kept) {
    const bool on_device = state_.devices[planned.device].space != host_space;
    DeviceSide* const side = on_device ? planned.task->side() : nullptr;
    // What it read may be what a task that failed left.
    if (!side || (side->goes_on() && !planned.poisoned)) {
      planned.enter(side ? TaskState::going_on : TaskState::detached);
      ++state_.detached;
      if (!side) return;
      unpin(planned);
      return state_.listener.detached(planned);
    }
  }
  end(planned, error ? error : planned.promised);
}

bool Endings::kept(PlannedTask& planned, std::exception_ptr error) {
  planned.kept = true;
  planned.promised = std::move(error);
  if (!planned.is_among(set_of(TaskState::detached, TaskState::going_on)))
    return false;  // its body ends it
  --state_.detached;
  end(planned, planned.promised);
  return true;
}

void Endings::end(PlannedTask& planned, std::exception_ptr error) {
  Task& task = *planned.task;
  if (keepers_.policy.traits().follows_tasks || planned.waited)
    keepers_.policy.ended(task.id.load(std::memory_order_relaxed));
  const EndedTask ended{&task, planned.released, planned.device, planned.path};
  end_content(planned, error);
  if (planned.state() == TaskState::head) state_.devices[planned.device].drop_head();
  if (planned.is_among(set_of(TaskState::issued, TaskState::detached))) unpin(planned);
  empty_partials(planned);
  if (planned.counted) planned.like->taken(*planned.counted);
  keepers_.gangs.left(planned, error || planned.poisoned);
  state_.plan.end(planned);
  for (const OperandSlot& slot : task.slots()) {
    if (!writes(slot.access)) continue;
    if (std::exchange(state_.plan.uses().at(slot.datum->tile).is_open, false))
      state_.plan.uses().overwritten(slot.datum->tile);  // it may be fetched now
    send_final_home(slot.datum->tile);
  }
  keepers_.groups.left(task.group);
  state_.listener.ended(ended);
}

void Endings::unpin(const PlannedTask& planned) {
  for (const PlannedAccess& access : planned.accesses)
    state_.memory->residency().unpin(access.datum->tile, state_.devices[planned.device].space);
}

void Endings::end_content(PlannedTask& planned, const std::exception_ptr& error) {
  if (planned.state() == TaskState::skipped) return;  // nothing was written
  if (!error && !planned.poisoned && planned.is_among(issued_states))
    return keepers_.recovery.confirm_written(planned);
  state_.listener.failed(*planned.task, planned.poisoned ? nullptr : error, planned.device);
  keepers_.recovery.poison_written(planned);
}

/// A partial result was combined, or will never be: its memory is free for others.
void Endings::empty_partials(PlannedTask& planned) {
  for (const OperandSlot& slot : planned.task->slots()) {
    Datum& datum = *slot.datum;
    if (!datum.partial) continue;
    if (!planned.is_among(issued_states)) datum.filled = false;
    if (datum.filled) continue;  // by the next group
    overwritten(datum);
    state_.memory->residency().discard(datum.tile);
  }
}

void Endings::send_final_home(TileId tile) {
  if (!uses_.is_final(tile)) return;
  const Datum& datum = *state_.plan.uses().known(tile)->datum;
  if (datum.is_lost() || !datum.home || state_.memory->directory().owner(tile) == no_space) return;
  state_.memory->final_writes().write(tile);
}

}  // namespace quadriga
