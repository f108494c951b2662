// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/part_cuda_absent.cpp: stands in for the CUDA variants in builds without CUDA.
#include "sparse/kernels/part_cuda.h"

namespace quadriga::sparse {

void add_cuda(PartCodelets&, const PartPlan&, const WorkShape&) {}
void add_cuda(LevelCodelets&, const LevelPart&) {}
void add_cuda(OneReductionPart&, const PartPlan&, const WorkShape&) {}
Kernel restart_on_cuda(const std::vector<std::int64_t>&, std::int64_t) { return {}; }
Kernel set_step_on_cuda(const std::vector<std::int64_t>&, std::int64_t) { return {}; }
Kernel set_direction_on_cuda(const std::vector<std::int64_t>&, std::int64_t) { return {}; }
Kernel set_step_alone_on_cuda(const std::vector<std::int64_t>&, std::int64_t) { return {}; }
Kernel end_step_on_cuda(const std::vector<std::int64_t>&, std::int64_t) { return {}; }
Kernel set_scalars_on_cuda(const std::vector<std::int64_t>&, std::int64_t, CgMethod) { return {}; }
Kernel snapshot_on_cuda() { return {}; }
Kernel replicate_on_cuda() { return {}; }
Kernel iterations_on_cuda(const PartPlan&, const WorkShape&) { return {}; }
Kernel one_reduction_on_cuda(const PartPlan&, const WorkShape&) { return {}; }

}  // namespace quadriga::sparse
