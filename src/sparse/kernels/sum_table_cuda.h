// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/sum_table_cuda.h: operands of a task of scalars as its kernel gets them.
#pragma once

#include <vector>

#include "sparse/kernels/launches_cuda.h"

namespace quadriga::sparse {

/// The sums that are operands from `first` on, with so many blocks of rows in each part.
/// Errors: invalid_argument for more parts than a kernel takes.
cuda::SumTable sum_table(const Arguments& a, std::size_t first,
                         const std::vector<std::int64_t>& blocks, std::int64_t columns);

}  // namespace quadriga::sparse
