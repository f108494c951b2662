// SPDX-License-Identifier: BSD-3-Clause
// src/device/reference_machine.h: a measured machine, for devices that nobody has measured.
#pragma once

#include <quadriga/machine.h>

#include "device/device_speed.h"

namespace quadriga {

/// machines/h200x1.json as it was when this was built. Its `source` says how each figure was
/// measured; `quadriga-bench kernels` and `copies` measure them on another machine.
const Machine& reference_machine();
/// How fast that machine's device is, to compare others with.
const DeviceSpeed& reference_speed();

/// What planning costs on a machine: that of the reference where its description doesn't say.
const PlanningCost& planning_cost(const Machine& machine);
/// What queueing an operation costs its host: the same.
double operation_seconds(const Machine& machine);

}  // namespace quadriga
