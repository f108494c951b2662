// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/scalar_codelets.h: sums of all parts become the scalars of an iteration.
//
// Sums of a part are one a quantity, block and column, in this order. They are added block by
// block, from the first to the last of the matrix: the same for any cut into parts.
#pragma once

#include <quadriga/codelet.h>
#include <quadriga/sparse_plan.h>

#include <cstdint>
#include <vector>

namespace quadriga::sparse {

/// See SolveCodelets. `blocks`: of each part.
Codelet restart_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns);
Codelet set_step_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns);
Codelet set_direction_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns);
/// See OneReductionCodelets.
Codelet set_step_alone_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns);
Codelet end_step_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns);
Codelet set_scalars_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns,
                            CgMethod method);
Codelet snapshot_codelet();
Codelet replicate_codelet();

}  // namespace quadriga::sparse
