// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/joint_iterations.h: several iterations of all parts, each on a device of its
// own, as tasks that start together.
//
// They compute what the tasks of part_codelets.h do, with the same bits, but for the scalars, which
// every device forms for itself from the sums of all: the same sums in the same order. Halos and
// sums are read where their owner wrote them. In an iteration the devices meet twice:
//
//   product    of each part, with M*r of the halo from the others' buffers
//   (meet)     sums of p^H*q are there
//   set_step, step
//   (meet)     sums of r^H*M*r and ||r||^2 are there, and buffers with M*r
//   set_direction
//
// What a task writes after a meeting others have read before it.
#pragma once

#include <quadriga/codelet.h>

#include <cstdint>
#include <span>
#include <vector>

#include "device/recorded_together.h"
#include "sparse/kernels/part_codelets.h"

namespace quadriga::sparse {

struct JointParams : MeetingParams {
  std::int64_t count = 1;  ///< Of iterations, at most history_length; the same for all parts.
};

/// By part: {matrix, state update, x update, work update, sums of the product write, sums of the
/// residual write, history, buffers update}. Each part has a state and a history; the first part's
/// history is updated, others' are written. JointParams. The others outlive them.
std::vector<Codelet> joint_iterations_codelets(const SolveCodelets& codelets,
                                               std::span<const PartPlan> plans);

}  // namespace quadriga::sparse
