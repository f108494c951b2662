// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/state.cpp: the state of a scheduler in words, and whether its parts agree on it.
#include "schedule/state.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <array>

namespace quadriga {
namespace {

using TaskCounts = std::array<int, task_states>;

/// "3 issued, 1 ready", in the order of the states.
std::string counts_in_words(const TaskCounts& counts) {
  std::string text;
  for (std::size_t state = 0; state < task_states; ++state)
    if (counts[state] > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[state],
                          name(static_cast<TaskState>(state)));
  return text;
}

std::string of_task(const PlannedTask& planned) {
  return fmt::format("; task {} '{}' is {}", planned.task->id.load(), planned.task->codelet->name,
                     name(planned.state()));
}

void expect(bool holds, const char* what) {
  if (!holds) fail(Errc::internal, what);
}

}  // namespace

std::string describe(const ScheduleState& state) {
  std::vector<TaskCounts> counts(state.devices.size() + 1);
  state.plan.for_each([&](const PlannedTask& planned) {
    const std::size_t place = planned.device == no_device ? state.devices.size() : planned.device;
    ++counts[place][static_cast<std::size_t>(planned.state())];
  });
  std::string text;
  for (const DeviceState& device : state.devices) {
    TaskCounts& here = counts[device.id];
    here[static_cast<std::size_t>(TaskState::issued)] = 0;
    text += fmt::format("  {}{}: {} issued", state.described(device).name,
                        device.lost ? " (lost)" : "", device.issued);
    if (const std::string others = counts_in_words(here); !others.empty()) text += ", " + others;
    if (device.head) text += of_task(*device.head) + ", waits for room";
    if (device.claimed) text += "; tasks that start together wait for room";
    int shown = 0;
    for (const PlannedTask* planned : state.plan.on(device.id).planned()) {
      if (planned->is_among(ready_states) || ++shown > 3) continue;
      text += fmt::format("{}, waits for {} predecessors", of_task(*planned),
                          planned->task->pending.load() & 0xffffffff);
    }
    text += '\n';
  }
  if (const std::string others = counts_in_words(counts.back()); !others.empty())
    text += fmt::format("  without a device: {}\n", others);
  if (state.detached > 0) text += fmt::format("  {} tasks wait for promises\n", state.detached);
  return text;
}

void ScheduleState::validate() const {
  plan.validate();
  std::vector<int> issued(devices.size());
  int open = 0;
  plan.for_each([&](const PlannedTask& planned) {
    open += planned.is_among(open_states);
    if (planned.state() == TaskState::issued) ++issued[planned.device];
    expect(planned.state() != TaskState::head || devices[planned.device].head == &planned,
           "a head isn't its device's");
    expect(planned.state() != TaskState::gathering || planned.gang,
           "a task gathers though it starts alone");
    expect(planned.state() != TaskState::skipped, "a task that was skipped has not ended");
  });
  for (const DeviceState& device : devices) {
    expect(!device.head || device.head->state() == TaskState::head,
           "a device's head is in another state");
    expect(device.issued == issued[device.id], "a device's issued tasks are in other states");
  }
  expect(detached == open, "the tasks that promises end are counted wrong");
}

}  // namespace quadriga
