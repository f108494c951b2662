// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/scheduler_memory.cpp: what the memory tells the scheduler.
#include <utility>

#include "schedule/scheduler.h"

namespace quadriga {

void Scheduler::evicted(TileId tile, SpaceId space) {
  if (const DeviceState* const device = state_.device_at(space))
    state_.listener.marked(device->id, Mark::evict, tile, 0);
}

void Scheduler::departed(TileId tile, SpaceId space) {
  if (const DeviceState* const device = state_.device_at(space))
    state_.plan.departed(tile, device->id);
}

/// Who uses it soon had planned its fetches without it.
void Scheduler::content_came_home(TileId tile, SpaceId from) {
  for (DeviceState& device : state_.devices) {
    if (device.space == host_space || device.space == from ||
        state_.plan.next_use(tile, device.id) == no_next_use)
      continue;
    prefetch_.forget(device);
    touch(device);
  }
}

void Scheduler::copy_ended(StreamId, Reason reason, TileId tile, SpaceId from, SpaceId to,
                           std::size_t bytes, const Completion& completion) {
  for (const SpaceId space : {from, to})
    if (DeviceState* const device = state_.device_at(space)) touch(*device);
  const bool goes_home = to == memory_.directory().home(tile);
  if (to == host_space || goes_home) content_came_home(tile, from);
  const TileUses* const uses = state_.plan.known_uses(tile);
  const EndedCopy copy{reason, tile, from, to, bytes, goes_home, uses ? uses->datum : nullptr};
  state_.listener.copied(copy, completion);
  if (completion.error)
    copy_failed(copy, completion);
  else if (goes_home)
    recovery_.write_back_done(tile);
}

void Scheduler::copy_failed(const EndedCopy& copy, const Completion& completion) {
  recovery_.source_failed(copy.tile, completion);
  if (!is_device_lost(completion.error)) {
    if (copy.goes_home) recovery_.write_back_failed(copy.tile, copy.reason);
  } else {
    // Between two devices it isn't known which is gone: copies of their own will tell.
    const bool is_known = copy.from == host_space || copy.to == host_space;
    for (const SpaceId space : {copy.from, copy.to}) {
      DeviceState* const device = space == host_space ? nullptr : state_.device_at(space);
      if (!device || device->lost) continue;
      if (is_known)
        lose(*device, completion.error);
      else
        memory_.transfers().probe(space);
    }
  }
  if (!memory_.directory().written(copy.tile)) recovery_.content_lost(copy.tile, completion.error);
}

void Scheduler::probed(SpaceId space, const Completion& completion) {
  DeviceState* const device = state_.device_at(space);
  for (DeviceState& each : state_.devices) touch(each);  // what was put off until now
  if (device && !device->lost && completion.error && is_device_lost(completion.error))
    lose(*device, completion.error);
}

/// What is placed on a lost device goes elsewhere.
void Scheduler::lose(DeviceState& device, const std::exception_ptr& cause,
                     const PlannedTask* ending) {
  recovery_.set_aside(device, cause, ending);
  prefetch_.forget(device);
  gangs_.device_lost(device.id, cause);
  const PlanSet& planned = state_.plan.on(device.id).planned;
  const std::vector<PlannedTask*> homeless(planned.begin(), planned.end());
  for (PlannedTask* const task : homeless) {
    state_.plan.unplace(*task);
    if (std::exchange(task->ready, false)) activate(*task);
  }
  for (PlannedTask* const task : pulls_.device_lost()) end(*task, recovery_.none_left());
}

}  // namespace quadriga
