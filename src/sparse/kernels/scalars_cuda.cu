// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/scalars_cuda.cu: the scalars between products and steps, by one block of
// threads.
#include "sparse/kernels/launches_cuda.h"
#include "sparse/kernels/one_reduction_scalars.h"
#include "sparse/kernels/part_device.cuh"
#include "sparse/kernels/sums_device.cuh"

namespace quadriga::sparse::cuda {
namespace {

__global__ void __launch_bounds__(threads)
    restart_all(SumTable table, ColumnState* states, RestartParams params) {
  for (int c = 0; c < table.columns; ++c) {
    const ColumnSums sums{sum_of_parts(table, 0, c), sum_of_parts(table, 1, c),
                          sum_of_parts(table, 2, c)};
    if (threadIdx.x > 0) continue;
    const double share = params.keeps_direction ? kept_share(states[c]) : 0;
    if (params.is_first) states[c] = {};
    const double tolerance = tolerance_of(params.tolerances, std::sqrt(sums.bb));
    if (params.replaces)
      sparse::replace(states[c], sums, tolerance);
    else
      sparse::restart(states[c], sums, tolerance, share);
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
