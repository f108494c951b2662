// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/plan.cpp: adding tasks to the plan, taking them out, next uses.
#include "schedule/plan.h"

#include <quadriga/error.h>

#include <algorithm>

#include "graph/partials.h"

namespace quadriga {

PlannedTask& Plan::add(Task& task) {
  PlannedTask* planned = nullptr;
  if (free_.empty()) {
    planned = &pool_.emplace_back();
  } else {
    planned = free_.back();
    free_.pop_back();
    std::vector<PlannedAccess> accesses = std::move(planned->accesses);
    std::vector<View> views = std::move(planned->views);
    *planned = PlannedTask{};
    planned->accesses = std::move(accesses);
    planned->views = std::move(views);
  }
  planned->task = &task;
  planned->position = position_of(task);
  planned->accesses.assign(task.operand_count, {});
  for (int i = 0; i < task.operand_count; ++i) {
    Datum& datum = *task.operands[i].datum;
    PlannedAccess& access = planned->accesses[static_cast<std::size_t>(i)];
    access.task = planned;
    if (writes(task.operands[i].access)) ++uses(datum.tile).writers;
    if (!task.reduction(i)) bind(access, datum);
  }
  task.planned = planned;
  ++waiting_;
  return *planned;
}

void Plan::bind(PlannedAccess& access, Datum& datum) {
  TileUses& tile = uses(datum.tile);
  access.datum = &datum;
  access.before = tile.last;
  access.after = nullptr;
  (tile.last ? tile.last->after : tile.first) = &access;
  tile.last = &access;
}

void Plan::unbind(PlannedAccess& access) {
  TileUses& tile = uses_[access.datum->tile];
  (access.before ? access.before->after : tile.first) = access.after;
  (access.after ? access.after->before : tile.last) = access.before;
}

void Plan::forget_uses(PlannedTask& planned) {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    if (planned.accesses[i].datum) unbind(planned.accesses[i]);
    if (writes(slot.access)) ++uses_[slot.datum->tile].versions_issued;
  }
}

/// Most tasks come in the order of the plan, last.
void Plan::put(PlanSet& set, PlannedTask& planned) {
  if (spare_.empty()) {
    set.insert(set.end(), &planned);
    return;
  }
  PlanSet::node_type node = std::move(spare_.back());
  spare_.pop_back();
  node.value() = &planned;
  set.insert(set.end(), std::move(node));
}

/// Most tasks leave in the order of the plan, first.
void Plan::drop(PlanSet& set, PlannedTask& planned) {
  const bool is_first = !set.empty() && *set.begin() == &planned;
  PlanSet::node_type node = is_first ? set.extract(set.begin()) : set.extract(&planned);
  if (node) spare_.push_back(std::move(node));
}

void Plan::leave(DevicePlan& device, PlannedTask& planned) {
  drop(device.planned, planned);
  if (planned.ready) drop(device.ready, planned);
  device.learning -= planned.learns;
  if (planned.position <= device.clear.until) --device.clear.tasks;
}

void Plan::issue(PlannedTask& planned) {
  forget_uses(planned);
  leave(devices_[planned.device], planned);
  planned.issued = true;
  planned.number = ++issues_;
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    TileUses& tile = uses_[slot.datum->tile];
    if (slot.access == Access::write) ++tile.epoch;
    // A partial result's own: the target's content doesn't change before it is combined.
    if (writes(slot.access)) uses_[planned.accesses[i].datum->tile].last_writer = planned.number;
    planned.accesses[i].epoch = tile.epoch;
  }
  --waiting_;
}

void Plan::end(PlannedTask& planned) {
  if (!planned.issued) {
    unplace(planned);
    forget_uses(planned);
    --waiting_;
  } else {
    devices_[planned.device].queued_seconds -= planned.seconds;
  }
  for (const OperandSlot& slot : planned.task->slots())
    if (writes(slot.access)) --uses_[slot.datum->tile].writers;
  planned.task->planned = nullptr;
  planned.task = nullptr;
  free_.push_back(&planned);
}

void Plan::place(PlannedTask& planned, DeviceId device) {
  planned.device = device;
  for (int i = 0; i < planned.task->operand_count; ++i)
    if (Reduction* const reduction = planned.task->reduction(i)) {
      Datum* const partial = reduction->partials[device].get();
      bind(planned.accesses[static_cast<std::size_t>(i)],
           partial ? *partial : *planned.task->operands[i].datum);
    }
  put(devices_[device].planned, planned);
  if (planned.position <= devices_[device].clear.until) devices_[device].clear = {};
  if (planned.ready) put(devices_[device].ready, planned);
  devices_[device].queued_seconds += planned.seconds;
  devices_[device].learning += planned.learns;
}

void Plan::unplace(PlannedTask& planned) {
  if (planned.device == no_device) return;
  DevicePlan& device = devices_[planned.device];
  leave(device, planned);
  device.queued_seconds -= planned.seconds;
  for (int i = 0; i < planned.task->operand_count; ++i)
    if (planned.task->reduction(i)) {
      unbind(planned.accesses[static_cast<std::size_t>(i)]);
      planned.accesses[static_cast<std::size_t>(i)].datum = nullptr;
    }
  planned.device = no_device;
}

void Plan::make_ready(PlannedTask& planned) {
  planned.ready = true;
  if (planned.device != no_device) put(devices_[planned.device].ready, planned);
}

std::uint64_t Plan::next_use(TileId tile, DeviceId device) const {
  return next_use_after(tile, device, 0);
}

std::uint64_t Plan::next_use_after(TileId tile, DeviceId device, Position position) const {
  if (tile >= uses_.size()) return UINT64_MAX;
  std::uint64_t next = UINT64_MAX;
  // Uses are in order of submission, plans by priority first: the next one is among the first few.
  constexpr int most = 32;
  int seen = 0;
  for (const PlannedAccess* use = uses_[tile].first; use && seen < most; use = use->after) {
    if (use->task->device != device && use->task->device != no_device) continue;
    if (use->task->position <= position) continue;
    next = std::min(next, use->task->position);
    ++seen;
  }
  return next;
}

void Plan::validate() const {
  for (std::size_t d = 0; d < devices_.size(); ++d)
    for (const PlannedTask* planned : devices_[d].ready)
      if (planned->device != d || planned->issued ||
          !devices_[d].planned.contains(const_cast<PlannedTask*>(planned)))
        fail(Errc::internal, "a ready task is not in its device's plan");
}

}  // namespace quadriga
