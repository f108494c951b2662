// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/state.cpp: the state of a scheduler in words.
#include "schedule/state.h"

#include <fmt/format.h>

namespace quadriga {

std::string describe(const ScheduleState& state) {
  std::string text;
  for (const DeviceState& device : state.devices) {
    const DeviceOrder& plan = state.plan.on(device.id);
    text += fmt::format("  {}{}: {} issued, {} ready, {} planned", state.described(device).name,
                        device.lost ? " (lost)" : "", device.issued, plan.ready().size(),
                        plan.planned().size());
    if (device.head)
      text += fmt::format("; task {} '{}' waits for room", device.head->task->id.load(),
                          device.head->task->codelet->name);
    if (device.claimed) text += "; tasks that start together wait for room";
    int shown = 0;
    for (const PlannedTask* planned : plan.planned()) {
      if (planned->ready || ++shown > 3) continue;
      text += fmt::format("; task {} '{}' waits for {} predecessors", planned->task->id.load(),
                          planned->task->codelet->name, planned->task->pending.load() & 0xffffffff);
    }
    text += '\n';
  }
  if (state.detached > 0) text += fmt::format("  {} tasks wait for promises\n", state.detached);
  return text;
}

}  // namespace quadriga
