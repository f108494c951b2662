// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/feasibility.cpp: bytes that a task needs in one memory space, against what it has.
#include "schedule/feasibility.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>

#include "base/units.h"
#include "schedule/variants.h"

namespace quadriga {
namespace {

std::string in_words(std::size_t bytes) {
  return fmt::format("{} ({} bytes)", format_bytes(static_cast<double>(bytes)), bytes);
}

}  // namespace

/// What an empty device, or the host's buffers, must have to hold the workspace and all operands;
/// one that is named twice counts once, and what is at home there not at all, unless the task adds
/// to a partial result of it.
std::size_t Feasibility::bytes_needed(const Task& task, DeviceId device) const {
  const SpaceId space = state_.machine.devices[device].space;
  const std::size_t workspace = task.workspace_bytes(device);
  std::size_t needed = workspace == 0 ? 0 : state_.memory->rounded(workspace, 1, space);
  for (int i = 0; i < task.operand_count; ++i) {
    const Datum& datum = *task.operands[i].datum;
    const auto same = [&](const OperandSlot& slot) { return slot.datum == &datum; };
    const bool adds_apart = task.operands[i].access == Access::reduce && space != host_space;
    const bool is_there = datum.at_home(space) && !adds_apart;
    if (!is_there && std::none_of(task.operands, task.operands + i, same))
      needed += state_.memory->rounded(datum.width_bytes(), datum.columns(), space);
  }
  return needed;
}

/// Once all devices that are meant to run a codelet are lost, the host does if it can.
bool Feasibility::takes_over(const DeviceState& device, const Codelet& codelet) const {
  return device.space == host_space && codelet.cpu &&
         std::ranges::all_of(state_.devices, [&](const DeviceState& each) {
           return each.lost || !offers(state_.machine, state_.described(each), codelet);
         });
}

bool Feasibility::can_run(const DeviceState& device, const Task& task) const {
  const Codelet& codelet = *task.codelet;
  if (device.lost) return false;
  if (!offers(state_.machine, state_.described(device), codelet) && !takes_over(device, codelet))
    return false;
  return bytes_needed(task, device.id) <= state_.memory->pool(device.space).capacity();
}

void Feasibility::check(const Task& task) const {
  const Codelet& codelet = *task.codelet;
  std::size_t needed = 0;
  std::size_t largest = 0;
  std::size_t on_host = 0;
  bool offered = false;
  for (DeviceId id = 0; id < state_.machine.devices.size(); ++id) {
    const Device& device = state_.machine.devices[id];
    // What chooses for itself may always choose the host.
    const bool is_meant =
        (!task.gang() || id == task.device) && (!task.side() || device.space == host_space);
    if (!is_meant || !offers(state_.machine, device, codelet)) continue;
    offered = true;
    const std::size_t here = bytes_needed(task, id);
    if (here <= state_.memory->pool(device.space).capacity()) return;
    if (device.space == host_space) {
      on_host = here;
      continue;
    }
    needed = std::max(needed, here);
    largest = std::max(largest, state_.memory->pool(device.space).capacity());
  }
  if (!offered) refuse_without_variant(state_.machine, task);
  if (needed == 0) refuse_on_host(task, on_host);
  fail(Errc::too_large,
       fmt::format("a task '{}' needs {} of device memory at once, and the largest device has {}; "
                   "use smaller tiles",
                   codelet.name, in_words(needed), in_words(largest)));
}

void Feasibility::refuse_on_host(const Task& task, std::size_t needed) const {
  fail(Errc::too_large,
       fmt::format("a task '{}' needs {} of host buffers at once, and {} may be used "
                   "(host_memory); use smaller tiles",
                   task.codelet->name, in_words(needed),
                   in_words(state_.memory->pool(host_space).capacity())));
}

/// Devices with memory of their own each have a partial result; cores add in place, where the
/// target is at home. Nobody needs one if a single device can do it all.
std::vector<bool> Feasibility::partial_places(const Codelet& codelet, const Datum& target) const {
  const Machine& machine = state_.machine;
  const Memory& memory = *state_.memory;
  std::vector<bool> places(machine.devices.size());
  std::size_t able = 0;
  bool can_init = true, can_combine = false;
  for (DeviceId d = 0; d < machine.devices.size(); ++d) {
    const Device& device = machine.devices[d];
    const bool is_host = device.space == host_space;
    const std::size_t both =
        2 * memory.rounded(target.width_bytes(), target.columns(), device.space);
    places[d] = !is_host && is_accelerator(device.kind);
    can_combine |=
        offers(machine, device, *codelet.combine) && both <= memory.pool(device.space).capacity();
    if (!offers(machine, device, codelet)) continue;
    ++able;
    can_init &= is_host || variant_for(*codelet.init, device.kind);
  }
  if (able < 2 || !can_init || !can_combine) places.clear();
  return places;
}

}  // namespace quadriga
