// SPDX-License-Identifier: BSD-3-Clause
// bench/planning_cost.h: what planning a call costs on a core of the host.
#pragma once

#include <quadriga/machine.h>

namespace quadriga::bench {

/// Measured for the machine's devices, with the rates that its description has of one type: medians
/// of `repeat` times. 0 of a machine without memory beside the host's.
PlanningCost planning_cost(const Machine& machine, int repeat);

}  // namespace quadriga::bench
