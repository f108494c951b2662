// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/one_reduction_iterations.h: several iterations with one reduction each, as
// iterations.h and joint_iterations.h have classic ones: with the bits of their tasks.
//
// Of several devices, a single-reduction iteration meets after the step, for u, and after the
// product, for its sums. A pipelined one meets once, after the step, for M*w and the sums: every
// second step writes those to memory of their own, as others may still read the last step's. Who
// writes either has met the others since, and they had read it before.
#pragma once

#include <span>
#include <vector>

#include "sparse/kernels/one_reduction_codelets.h"

namespace quadriga::sparse {

/// Operands and parameters as of iterations.h, without M's levels.
Codelet iterations_codelet(const OneReductionCodelets& codelets, const PartPlan& plan,
                           const WorkShape& work);

/// Bytes of the sums of a pipelined step, of so many blocks and columns.
constexpr std::int64_t step_sums_bytes(std::int64_t blocks) noexcept {
  return 3 * blocks * static_cast<std::int64_t>(sizeof(double));
}

/// As of joint_iterations.h. Pipelined, then {sums of the step write, buffers write} for every
/// second step.
std::vector<Codelet> joint_iterations_codelets(const OneReductionCodelets& codelets,
                                               std::span<const PartPlan> plans);

}  // namespace quadriga::sparse
