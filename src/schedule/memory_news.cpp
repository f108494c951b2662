// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/memory_news.cpp: copies that ended, tiles that left, devices that are gone.
#include "schedule/memory_news.h"

#include <bit>

namespace quadriga {

void MemoryNews::evicted(TileId tile, SpaceId space) {
  if (const DeviceState* const device = state_.device_at(space))
    state_.listener.marked(device->id, Mark::evict, tile, 0);
}

void MemoryNews::departed(TileId tile, SpaceId space) {
  if (const DeviceState* const device = state_.device_at(space))
    state_.plan.uses().departed(tile, device->id);
}

/// Who uses it soon had planned its fetches without it.
void MemoryNews::content_came_home(TileId tile, SpaceId from) {
  const std::uint64_t users = state_.plan.uses().possible_users(tile);
  for (std::uint64_t rest = users; rest != 0; rest &= rest - 1) {
    DeviceState& device = state_.devices[static_cast<std::size_t>(std::countr_zero(rest))];
    if (device.space == host_space || device.space == from) continue;
    prefetch_.forget(device);
    device.touched = true;
  }
}

void MemoryNews::copy_ended(StreamId, Reason reason, TileId tile, SpaceId from, SpaceId to,
                            std::size_t bytes, const Completion& completion) {
  for (const SpaceId space : {from, to})
    if (DeviceState* const device = state_.device_at(space)) device->touched = true;
  const bool goes_home = to == state_.memory->directory().home(tile);
  if (to == host_space || goes_home) content_came_home(tile, from);
  const TileUses* const uses = state_.plan.uses().known(tile);
  const EndedCopy copy{reason, tile, from, to, bytes, goes_home, uses ? uses->datum : nullptr};
  state_.listener.copied(copy, completion);
  if (completion.error)
    copy_failed(copy, completion);
  else if (goes_home)
    recovery_.write_back_done(tile);
}

void MemoryNews::copy_failed(const EndedCopy& copy, const Completion& completion) {
  recovery_.source_failed(copy.tile, completion);
  if (is_device_lost(completion.error))
    look_for_lost(copy, completion.error);
  else if (copy.goes_home)
    recovery_.write_back_failed(copy.tile, copy.reason);
  if (!state_.memory->directory().written(copy.tile))
    recovery_.content_lost(copy.tile, completion.error);
}

/// Invariant 3.
void MemoryNews::look_for_lost(const EndedCopy& copy, const std::exception_ptr& cause) {
  const bool is_known = copy.from == host_space || copy.to == host_space;
  for (const SpaceId space : {copy.from, copy.to}) {
    DeviceState* const device = space == host_space ? nullptr : state_.device_at(space);
    if (!device || device->lost) continue;
    if (is_known)
      lose_(*device, cause);
    else
      state_.memory->transfers().probe(space);
  }
}

void MemoryNews::probed(SpaceId space, const Completion& completion) {
  state_.touch_all();  // what was put off until now
  DeviceState* const device = state_.device_at(space);
  if (device && !device->lost && completion.error && is_device_lost(completion.error))
    lose_(*device, completion.error);
}

}  // namespace quadriga
