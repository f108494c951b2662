// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/scalars_cuda.cu: the scalars between products and steps, by one block of
// threads.
#include "sparse/kernels/launches_cuda.h"
#include "sparse/kernels/part_device.cuh"

namespace quadriga::sparse::cuda {
namespace {

/// A quantity of all blocks of rows, known to thread 0. A thread has every 256th block, counted
/// over all parts, so that the order doesn't depend on how rows are cut.
__device__ double sum_of_parts(const SumTable& table, int quantity, int column) {
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

__global__ void __launch_bounds__(threads)
    restart_all(SumTable table, ColumnState* states, RestartParams params) {
  for (int c = 0; c < table.columns; ++c) {
    const ColumnSums sums{sum_of_parts(table, 0, c), sum_of_parts(table, 1, c),
                          sum_of_parts(table, 2, c)};
    if (threadIdx.x > 0) continue;
    const double share = params.keeps_direction ? kept_share(states[c]) : 0;
    if (params.is_first) states[c] = {};
    sparse::restart(states[c], sums, tolerance_of(params.tolerances, std::sqrt(sums.bb)), share);
  }
}

__global__ void __launch_bounds__(threads) set_all_steps(SumTable table, ColumnState* states) {
  for (int c = 0; c < table.columns; ++c) {
    if (states[c].status != IterationStatus::running) continue;
    const double pq = sum_of_parts(table, 0, c);
    if (threadIdx.x == 0) sparse::set_step(states[c], pq);
  }
}

__global__ void __launch_bounds__(threads)
    set_all_directions(SumTable table, ColumnState* states, IterationRecord* history) {
  for (int c = 0; c < table.columns; ++c) {
    if (states[c].status != IterationStatus::running) continue;
    const ColumnSums sums{sum_of_parts(table, 0, c), sum_of_parts(table, 1, c), 0};
    if (threadIdx.x == 0) end_iteration(states[c], sums, history, table.columns, c);
  }
}

}  // namespace

void restart(cudaStream_t stream, const SumTable& sums, ColumnState* states,
             const RestartParams& params) {
  restart_all<<<1, threads, 0, stream>>>(sums, states, params);
  check_launch("the first scalars");
}

void set_step(cudaStream_t stream, const SumTable& sums, ColumnState* states) {
  set_all_steps<<<1, threads, 0, stream>>>(sums, states);
  check_launch("the length of a step");
}

void set_direction(cudaStream_t stream, const SumTable& sums, ColumnState* states,
                   IterationRecord* history) {
  set_all_directions<<<1, threads, 0, stream>>>(sums, states, history);
  check_launch("the next direction");
}

}  // namespace quadriga::sparse::cuda
