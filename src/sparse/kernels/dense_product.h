// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/dense_product.h: q = A*p of one block of rows from dense blocks, on the host.
#pragma once

#include "sparse/kernels/part_kernels.h"

namespace quadriga::sparse {

/// For K neighbouring columns of the vectors from `column` on. K is 1 or 4.
template <class T, int K>
void multiply_dense(const PartArrays<T>& a, std::int64_t block, const PartVectors<T>& v,
                    std::int64_t column);

}  // namespace quadriga::sparse
