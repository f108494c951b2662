// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedules/simulation.h: schedules under a virtual clock.
//
// The model: a transfer first waits for the latencies of its wires. Its bytes then come to one wire
// after the other, and each wire passes on what has come to it in the order of arrival, at its own
// rate; a transfer ends when the last wire is through. Copies between a device and the host are
// transfers too; reductions take turns on their rank. Of a lane, two transfers may be under way.
#pragma once

#include <vector>

#include "message/schedules/cluster.h"
#include "message/schedules/schedule.h"

namespace quadriga::message {

struct SimulatedRun {
  double seconds = 0;
  std::vector<double> wire_bytes;  ///< That crossed each wire of the cluster.
  std::size_t steps = 0;
};

/// Takes all steps of a schedule. Deterministic.
/// Errors: internal naming a rank's step if the schedule can't go on.
SimulatedRun simulate(const Cluster& cluster, const Schedule& schedule);

}  // namespace quadriga::message
