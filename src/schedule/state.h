// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/state.h: what the parts of a scheduler work on together.
#pragma once

#include <quadriga/machine.h>

#include <deque>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "device/instructions.h"
#include "memory/memory.h"
#include "schedule/kernel_history.h"
#include "schedule/lingering.h"
#include "schedule/plan.h"
#include "schedule/schedule_listener.h"

namespace quadriga {

/// A stream on which kernels of a device run, and what is queued there.
struct ComputeStream {
  StreamId id = 0;
  std::deque<std::pair<std::uint64_t, PlannedTask*>> issued;  ///< By ticket.
  double issued_seconds = 0;                                  ///< Of their kernels.
  int waiting = 0;  ///< Issued tasks whose variants may wait.
};

struct DeviceState {
  DeviceId id = 0;
  SpaceId space = host_space;
  std::vector<ComputeStream> streams;
  PlannedTask* head = nullptr;  ///< Found no room: nothing else is issued before it.
  bool lacks_buffer = false;    ///< The head waits for a buffer on the host.
  bool claimed = false;         ///< A gang waits for room here and elsewhere: nothing else begins.
  bool awaits_source = false;   ///< A ready task waits for content that another device makes.
  int issued = 0;               ///< Tasks that have not ended.
  double issued_seconds = 0;    ///< Of them, with the copies that they wait for.
  bool lost = false;
  std::exception_ptr loss;  ///< Why.
  // Whether it is worth asking what it could issue next.
  bool touched = true;  ///< Something changed that may let it do more.
  bool open = false;    ///< It may find a task to issue.
  bool looked = false;  ///< For one, since it last filled up.

  /// Somebody waits for what becomes free here.
  bool is_closed() const noexcept { return head || claimed; }
  /// A ready task found no room.
  void make_head(PlannedTask& planned) {
    planned.enter(TaskState::head);
    head = &planned;
  }
  /// The head, if there is one, is a ready task as others are; returns it.
  PlannedTask* drop_head() {
    if (head) head->enter(TaskState::ready);
    return std::exchange(head, nullptr);
  }
};

/// Device and stream of a number; null where it isn't a compute stream.
struct StreamOwner {
  DeviceState* device = nullptr;
  ComputeStream* stream = nullptr;
};

struct ScheduleState {
  ScheduleState(const Machine& described, Instructions& out, ScheduleListener& to)
      : machine(described), instructions(out), listener(to), plan(described.devices.size()) {}

  const Machine& machine;
  Instructions& instructions;
  ScheduleListener& listener;
  Plan plan;
  KernelHistory kernel_history;
  Lingering lingering;
  std::vector<DeviceState> devices;
  std::vector<StreamOwner> owners;  ///< By stream.
  std::vector<DeviceState*> by_space;
  Memory* memory = nullptr;  ///< Set once, when the scheduler is made.
  bool any_failed = false;   ///< Some task has, or some content was lost.
  /// Tasks whose bodies have ended, but not their promises, and those that are deferred.
  int detached = 0;
  bool cancelled = false;  ///< Tasks that have not been issued end cancelled.

  /// The first device that works on a space's memory; null if there is none.
  DeviceState* device_at(SpaceId space) noexcept {
    return space < by_space.size() ? by_space[space] : nullptr;
  }
  /// All devices are there: they stay where they are.
  void index_spaces() {
    by_space.assign(static_cast<std::size_t>(machine.spaces()), nullptr);
    for (DeviceState& device : devices)
      if (!by_space[device.space]) by_space[device.space] = &device;
  }
  /// Each device may do more, for all that is known.
  void touch_all() noexcept {
    for (DeviceState& device : devices) device.touched = true;
  }
  const Device& described(const DeviceState& device) const { return machine.devices[device.id]; }
  /// How many tasks of a device run side by side, each as fast as alone.
  static double width(const DeviceState& device) noexcept {
    return device.space == host_space ? static_cast<double>(device.streams.size()) : 1;
  }
  bool any_issued() const noexcept {
    for (const DeviceState& device : devices)
      if (device.issued > 0) return true;
    return false;
  }
  /// Throws internal if a task is in another state than its device, or what counts such, says.
  void validate() const;
};

/// What each device has, and which tasks wait for what; for people.
std::string describe(const ScheduleState& state);

}  // namespace quadriga
