// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/plan.cpp: the steps of a task, from a pool of their descriptions.
#include "schedule/plan.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <memory>
#include <utility>

#include "schedule/cache_hints.h"

namespace quadriga {

Plan::Plan(std::size_t devices) : devices_(devices), loads_(devices), uses_(devices_) {
  constexpr std::size_t most = UseTable::most_devices;
  require(devices <= most,
          fmt::format("a plan for {} devices; at most {} are possible", devices, most));
}

PlannedTask& Plan::add(Task& task, Uses uses) {
  for (const OperandSlot& slot : task.slots()) uses_.fetch(slot.datum->tile, no_device);
  PlannedTask* planned = nullptr;
  if (free_.empty()) {
    planned = &pool_.emplace_back();
  } else {
    planned = free_.back();
    free_.pop_back();
    constexpr std::size_t ahead = 4;
    if (free_.size() >= ahead) fetch_task(free_[free_.size() - ahead]);
    if (!free_.empty()) fetch_accesses(*free_.back());
    std::vector<PlannedAccess> accesses = std::move(planned->accesses);
    std::vector<View> views = std::move(planned->views);
    std::destroy_at(planned);
    std::construct_at(planned);
    planned->accesses = std::move(accesses);
    planned->views = std::move(views);
  }
  planned->task = &task;
  planned->position = position_of(task);
  planned->accesses.assign(task.operand_count, {});
  uses_.add(*planned);
  if (uses == Uses::planned) uses_.plan(*planned);
  task.planned = planned;
  ++waiting_;
  return *planned;
}

/// The order of its device.
void Plan::leave(PlannedTask& planned) {
  devices_[planned.device].erase(planned);
  loads_[planned.device].learning -= planned.learns;
}

void Plan::issue(PlannedTask& planned) {
  uses_.forget(planned);
  leave(planned);
  planned.enter(TaskState::issued);
  planned.number = ++issues_;
  uses_.issue(planned);
  --waiting_;
}

void Plan::end(PlannedTask& planned) {
  if (!planned.is_among(issued_states)) {
    take_out(planned);
    uses_.forget(planned);
    --waiting_;
  } else {
    loads_[planned.device].queued_seconds -= planned.seconds;
  }
  uses_.end(*planned.task);
  planned.enter(TaskState::ended);
  planned.task->planned = nullptr;
  planned.task = nullptr;
  free_.push_back(&planned);
}

void Plan::place(PlannedTask& planned, DeviceId device) {
  planned.enter(TaskState::placed);
  uses_.place(planned, device);
  devices_[device].insert(planned);
  loads_[device].queued_seconds += planned.seconds;
  loads_[device].learning += planned.learns;
}

/// Of its device, if it has one.
void Plan::take_out(PlannedTask& planned) {
  if (planned.device == no_device) return;
  leave(planned);
  loads_[planned.device].queued_seconds -= planned.seconds;
  uses_.unplace(planned);
}

void Plan::unplace(PlannedTask& planned) {
  if (planned.device == no_device) return;
  take_out(planned);
  planned.enter(TaskState::submitted);
}

void Plan::make_ready(PlannedTask& planned) {
  planned.enter(TaskState::ready);
  if (planned.task->behind_hold.load(std::memory_order_relaxed)) [[unlikely]]
    uses_.host_has_left(planned);
  devices_[planned.device].make_ready(planned);
}

void Plan::reposition(PlannedTask& planned, Position position) {
  const DeviceId device = planned.device;
  const bool was_ready = planned.state() == TaskState::ready;
  unplace(planned);
  uses_.reposition(planned, position);
  if (device != no_device) place(planned, device);
  if (was_ready) make_ready(planned);
}

void Plan::validate() const {
  std::vector<std::size_t> planned(devices_.size()), ready(devices_.size());
  for_each([&](const PlannedTask& each) {
    if (each.is_among(homeless_states) != (each.device == no_device))
      fail(Errc::internal,
           fmt::format("task {} is {} and {} a device", each.task->id.load(), name(each.state()),
                       each.device == no_device ? "has not" : "has"));
    if (each.is_among(static_cast<TaskStates>(homeless_states | issued_states))) return;
    ++planned[each.device];
    ready[each.device] += each.is_among(ready_states);
  });
  for (DeviceId device = 0; device < devices_.size(); ++device) {
    devices_[device].validate(device);
    if (planned[device] != devices_[device].planned().size() ||
        ready[device] != devices_[device].ready().size())
      fail(Errc::internal, "a device's tasks are in other states than its order says");
  }
  uses_.validate();
}

}  // namespace quadriga
