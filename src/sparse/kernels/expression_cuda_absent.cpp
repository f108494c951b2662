// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/expression_cuda_absent.cpp: stands in for the CUDA variants in builds without
// CUDA.
#include "sparse/kernels/expression_cuda.h"

namespace quadriga::sparse {

Kernel combine_on_cuda(DType) { return {}; }
Kernel multiply_elements_on_cuda(DType) { return {}; }
Kernel sum_blocks_on_cuda(DType) { return {}; }
Kernel total_on_cuda(const std::vector<std::int64_t>&, bool) { return {}; }
Kernel scalar_on_cuda() { return {}; }

}  // namespace quadriga::sparse
