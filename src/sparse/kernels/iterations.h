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
  std::int64_t count = 1;  ///< At most history_length.
};

/// {matrix, state update, x update, work update, sums of the product write, sums of the residual
/// write, history update}. IterationsParams. The others outlive it.
Codelet iterations_codelet(const PartCodelets& part, const Codelet& set_step,
                           const Codelet& set_direction, const PartPlan& plan,
                           const WorkShape& work);

}  // namespace quadriga::sparse
