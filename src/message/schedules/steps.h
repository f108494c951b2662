// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedules/steps.h: the steps of one rank, from a plan or from what pairs exchange.
#pragma once

#include "message/schedules/schedule.h"
#include "message/schedules/tree_choice.h"

namespace quadriga::message {

/// What a rank does in a collective along trees. Each rank can tell its own from the plan.
RankSteps steps_of(const Cluster& cluster, const SchedulePlan& plan, int rank);
Schedule schedule_of(const Cluster& cluster, const SchedulePlan& plan);

/// Bytes for or from another rank, or this one, and where they are in the input or the output.
struct Parcel {
  int peer = 0;
  std::int64_t bytes = 0;  ///< None: left out, on both sides.
  std::int64_t offset = 0;
};

/// Direct transfers, the next ranks first: gather, scatter, alltoall and neighbour exchange of any
/// sizes. Of several parcels for one rank the first that is listed goes to the first that is
/// listed there. Both lists must agree for `own`.
RankSteps direct_steps(int own, int ranks, std::span<const Parcel> sends,
                       std::span<const Parcel> receives);

}  // namespace quadriga::message
