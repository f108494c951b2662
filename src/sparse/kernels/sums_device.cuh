// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/sums_device.cuh: sums of all parts, by one block of threads.
#pragma once

#include "sparse/kernels/launches_cuda.h"
#include "sparse/kernels/part_device.cuh"

namespace quadriga::sparse::cuda {

/// A quantity of all blocks of rows, known to thread 0. A thread has every 256th block, counted
/// over all parts, so that the order doesn't depend on how rows are cut.
__device__ inline double sum_of_parts(const SumTable& table, int quantity, int column) {
  double total = 0;
  std::int64_t block = threadIdx.x;
  for (int part = 0; part < table.parts; ++part) {
    const std::int64_t before = table.blocks_before[part];
    const std::int64_t after = table.blocks_before[part + 1];
    const double* const sums =
        table.sums[part] + quantity * (after - before) * table.columns + column;
    for (; block < after; block += threads) total += sums[(block - before) * table.columns];
  }
  return sum_of_block(total);
}

}  // namespace quadriga::sparse::cuda
