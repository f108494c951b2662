// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/iterations.h: several iterations as one task, for a matrix in one part.
//
// They compute what the tasks of part_codelets.h do, in the same order, with the same bits. On a
// GPU they are recorded: the host only launches them, and reads the states late.
#pragma once

#include <quadriga/codelet.h>

#include <cstdint>

#include "sparse/kernels/part_codelets.h"

namespace quadriga::sparse {

struct IterationsParams {
  std::int64_t count = 1;       ///< At most history_length.
  std::int64_t generation = 0;  ///< Of the cycle: what was recorded of another isn't launched.
};

/// {matrix, state update, x update, work update, sums of the product write, sums of the residual
/// write, history update}, then for each coarser level of M {restriction, prolongation, the coarser
/// level's matrix, its work write}. IterationsParams. The others outlive it.
Codelet iterations_codelet(const SolveCodelets& codelets, const PartPlan& plan,
                           const CyclePlan* cycle);

}  // namespace quadriga::sparse
