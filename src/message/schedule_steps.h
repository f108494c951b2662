// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedule_steps.h: the steps of one rank, from a plan or from what each pair exchanges.
#pragma once

#include "message/schedule.h"
#include "message/schedule_plan.h"

namespace quadriga::message {

/// What a rank does in a collective along trees. Each rank can tell its own from the plan.
RankSteps steps_of(const Cluster& cluster, const SchedulePlan& plan, int rank);
Schedule schedule_of(const Cluster& cluster, const SchedulePlan& plan);

/// Bytes that a rank exchanges with another, and where they are in its input and output.
struct PairPart {
  std::int64_t sent = 0, received = 0;
  std::int64_t from = 0, into = 0;
};

/// Direct transfers between all pairs that have something to exchange, the next ranks first: gather,
/// scatter, alltoall and neighbour exchange of any sizes. `parts[own]` is copied: its `sent` counts.
RankSteps direct_steps(int own, std::span<const PairPart> parts);

}  // namespace quadriga::message
