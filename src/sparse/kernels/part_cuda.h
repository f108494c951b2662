// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/part_cuda.h: the CUDA variants of a part's codelets and of the scalars'.
//
// They compute what the host's do (part_kernels.h), with sums in another order: a block of threads
// has a block of rows, so that the order is the same for any number of GPUs. In builds without CUDA
// there are none.
#pragma once

#include "sparse/kernels/part_codelets.h"

namespace quadriga::sparse {

/// Gives a part's codelets their CUDA variants. Plan and work outlive them.
void add_cuda(PartCodelets& part, const PartPlan& plan, const WorkShape& work);

/// As restart_codelet() and its like, with so many blocks of rows in each part.
Kernel restart_on_cuda(const std::vector<std::int64_t>& blocks, std::int64_t columns);
Kernel set_step_on_cuda(const std::vector<std::int64_t>& blocks, std::int64_t columns);
Kernel set_direction_on_cuda(const std::vector<std::int64_t>& blocks, std::int64_t columns);
Kernel set_step_alone_on_cuda(const std::vector<std::int64_t>& blocks, std::int64_t columns);
Kernel end_step_on_cuda(const std::vector<std::int64_t>& blocks, std::int64_t columns);
Kernel set_scalars_on_cuda(const std::vector<std::int64_t>& blocks, std::int64_t columns,
                           CgMethod method);
Kernel snapshot_on_cuda();
Kernel replicate_on_cuda();
/// That of iterations.h, for a matrix in one part: three kernels an iteration, as the last blocks
/// of threads form the scalars. Plan and work outlive it.
Kernel iterations_on_cuda(const PartPlan& plan, const WorkShape& work);
/// The same of OneReductionCodelets: two kernels an iteration.
Kernel one_reduction_on_cuda(const PartPlan& plan, const WorkShape& work);

}  // namespace quadriga::sparse
