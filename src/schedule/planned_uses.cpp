// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/planned_uses.cpp: next uses by the plan, and the time until them by predictions.
#include "schedule/planned_uses.h"

#include <algorithm>
#include <bit>

namespace quadriga {

std::uint64_t PlannedUses::next_use(TileId tile, SpaceId space) const {
  for (const DeviceState& device : state_.devices)
    if (device.space == space) return state_.plan.uses().next_use(tile, device.id);
  return no_next_use;
}

bool PlannedUses::take_later_uses(std::vector<LaterUse>& tiles) {
  state_.plan.uses().take_later([&](TileId tile, DeviceId device) {
    tiles.push_back({tile, device == no_device ? no_space : state_.devices[device].space});
  });
  return true;
}

/// Positions count all devices' tasks; one device passes them while it runs what is planned there.
double PlannedUses::positions_per_second(SpaceId space) const {
  std::size_t positions = 0;
  double seconds = 0;
  for (const DeviceState& device : state_.devices) {
    const PlanSet& planned = state_.plan.on(device.id).planned();
    positions += planned.size();
    if (device.space != space) continue;
    seconds = state_.plan.load(device.id).queued_seconds;
    for (const ComputeStream& stream : device.streams) seconds -= stream.issued_seconds;
    seconds /= ScheduleState::width(device);
    if (planned.empty()) seconds = 0;
  }
  // What is left of a sum that should be zero is no time.
  constexpr double least_seconds = 1e-9;
  return seconds > least_seconds ? static_cast<double>(positions) / seconds : 0;
}

bool PlannedUses::is_final(TileId tile) const {
  const TileUses* const uses = state_.plan.uses().known(tile);
  return uses && uses->datum && uses->datum->final && uses->writers == 0;
}

bool PlannedUses::is_wanted_within(double seconds, TileId tile, SpaceId space) const {
  const double positions = seconds * positions_per_second(space);
  return std::ranges::any_of(state_.devices, [&](const DeviceState& device) {
    return device.space == space && state_.plan.uses().wants_before(tile, device.id, positions);
  });
}

std::uint64_t PlannedUses::readers(TileId tile) const {
  std::uint64_t spaces = 0;
  for (std::uint64_t rest = state_.plan.uses().users(tile); rest != 0; rest &= rest - 1) {
    const DeviceState& device = state_.devices[static_cast<std::size_t>(std::countr_zero(rest))];
    if (state_.plan.uses().reads_present(*state_.plan.uses().first_use(tile, device.id)))
      spaces |= std::uint64_t{1} << device.space;
  }
  return spaces;
}

}  // namespace quadriga
