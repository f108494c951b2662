// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/plan.h: the submitted tasks from when they come until they end: each step of a task
// in the order of its device, in the uses of its tiles and in what is queued there.
//
// Pure: no thread, device or clock; used by the driver's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "schedule/device_order.h"
#include "schedule/planned_task.h"
#include "schedule/use_table.h"

namespace quadriga {

/// What is placed on a device and has not ended.
struct DeviceLoad {
  double queued_seconds = 0;  ///< Predicted.
  int learning = 0;           ///< Planned tasks that learn.
};

class Plan {
 public:
  /// Whether a task's uses are planned when it is added, or with those of the device that it gets
  /// at once.
  enum class Uses : bool { planned, later };
  /// Of so many devices, at least one. Errors: invalid_argument if they are too many.
  explicit Plan(std::size_t devices);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  PlannedTask& add(Task& task, Uses uses = Uses::planned);
  /// The uses of a task that was added without them, if it wasn't placed meanwhile.
  void plan_uses(PlannedTask& planned) { uses_.plan(planned); }
  /// The task has ended, or was refused: its uses are forgotten if they weren't yet.
  void end(PlannedTask& planned);
  void place(PlannedTask& planned, DeviceId device);
  /// It has no device any more, and is not ready; nothing if it has none.
  void unplace(PlannedTask& planned);
  /// It could be issued on its device.
  void make_ready(PlannedTask& planned);
  /// Moves a task that isn't issued to another position, with its uses.
  void reposition(PlannedTask& planned, Position position);
  /// Issued: leaves the plan; its writes count as issued.
  void issue(PlannedTask& planned);

  DeviceOrder& on(DeviceId device) { return devices_[device]; }
  const DeviceOrder& on(DeviceId device) const { return devices_[device]; }
  DeviceLoad& load(DeviceId device) { return loads_[device]; }
  const DeviceLoad& load(DeviceId device) const { return loads_[device]; }
  UseTable& uses() noexcept { return uses_; }
  const UseTable& uses() const noexcept { return uses_; }
  std::size_t waiting() const noexcept { return waiting_; }
  /// Calls visit(const PlannedTask&) for all that have not ended.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const PlannedTask& planned : pool_)
      if (planned.state() != TaskState::ended) visit(planned);
  }
  void validate() const;

 private:
  void leave(PlannedTask& planned);
  void take_out(PlannedTask& planned);

  std::vector<DeviceOrder> devices_;
  std::vector<DeviceLoad> loads_;
  UseTable uses_;
  std::deque<PlannedTask> pool_;
  std::vector<PlannedTask*> free_;
  std::size_t waiting_ = 0;  ///< Planned and not issued.
  std::uint64_t issues_ = 0;
};

}  // namespace quadriga
