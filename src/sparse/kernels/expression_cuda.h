// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/expression_cuda.h: the CUDA variants of expression_codelets.h.
//
// They compute what the host's do, with sums in another order, that of part_cuda.h. In builds
// without CUDA there are none.
#pragma once

#include <quadriga/codelet.h>

#include <cstdint>
#include <vector>

namespace quadriga::sparse {

Kernel combine_on_cuda(DType dtype);
Kernel multiply_elements_on_cuda(DType dtype);
Kernel sum_blocks_on_cuda(DType dtype);
/// Of parts of so many blocks of rows.
Kernel total_on_cuda(const std::vector<std::int64_t>& blocks, bool is_complex);
Kernel scalar_on_cuda();

}  // namespace quadriga::sparse
