// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/prediction.h: how long a task's kernel takes on each device: by the machine's table,
// else as tasks like it took.
#pragma once

#include "schedule/kernel_times.h"
#include "schedule/state.h"

namespace quadriga {

class Prediction {
 public:
  explicit Prediction(ScheduleState& state) : state_(state), times_(state.machine) {}

  /// A task was submitted; `cost` is its codelet's, its kernel empty where that has none.
  void begin(PlannedTask& planned, const Cost& cost);
  double seconds_on(const PlannedTask& planned, DeviceId device) const;
  Experience experience_on(const PlannedTask& planned, DeviceId device) const;
  /// It is about to be placed there.
  void place_on(PlannedTask& planned, DeviceId device);
  /// It is about to be issued: others of its class may have ended since it was placed.
  void renew(PlannedTask& planned);

 private:
  ScheduleState& state_;
  mutable KernelTimes times_;  ///< Remembers what it was asked.
};

/// How long a placed task's kernel takes by the machine's table; 0 if it isn't there.
Nanoseconds expected_time(const Machine& machine, const PlannedTask& planned);

}  // namespace quadriga
