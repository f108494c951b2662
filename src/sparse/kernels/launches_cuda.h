// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/launches_cuda.h: the kernels of part_kernels.h on a stream, as far as they
// differ; arrays are in the memory of its device. They return once queued. Errors: as
// quadriga::cuda::check().
#pragma once

#include <cuda_runtime_api.h>

#include "sparse/kernels/part_codelets.h"
#include "sparse/kernels/part_kernels.h"

namespace quadriga::sparse::cuda {

/// As multiply(). Nothing is written for columns that don't run; null states: all run.
template <class T>
void multiply(cudaStream_t stream, const PartArrays<T>& a, BlockRange range,
              const PartVectors<T>& v, const ColumnState* states, double* sums);
template <class T>
void add_partial(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
                 const ColumnState* states, double* sums);
template <class T>
void turn(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
          const ColumnState* states);
template <class T>
void turn_halo(cudaStream_t stream, const PartShape& shape, const PartVectors<T>& v,
               const ColumnState* states, const T* arrived, std::int64_t first, std::int64_t count);
template <class T>
void step(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
          const ColumnState* states, T* x, double* sums);
template <class T>
void residual(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v, const T* q,
              const T* b, double* sums);
template <class T>
void gather(cudaStream_t stream, const PartArrays<T>& a, const T* vector, std::int64_t columns,
            std::int64_t first, std::int64_t count, bool scaled, T* out);

/// As relax() and its like, on columns that run; null states: all run.
template <class T>
void relax(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
           const Relaxation& relaxation, const ColumnState* states);
template <class T>
void correct(cudaStream_t stream, std::int64_t rows, const PartVectors<T>& v,
             const ColumnState* states);
template <class T>
void sum_products(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
                  const ColumnState* states, double* sums);

/// For a matrix in one part, which is all there is to sum: a kernel's last block of threads also
/// forms the scalars, as set_step() and set_direction() do, with the same bits. `arrived` must be
/// zero, and is zero afterwards.
template <class T>
void multiply_and_set_step(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
                           ColumnState* states, double* sums, unsigned* arrived);
template <class T>
void step_and_set_direction(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
                            ColumnState* states, T* x, double* sums, IterationRecord* history,
                            unsigned* arrived);

/// The sums of all parts, in the order of rows.
struct SumTable {
  static constexpr int most_parts = 128;
  int parts = 0;
  int columns = 1;
  std::int64_t blocks_before[most_parts + 1] = {};
  const double* sums[most_parts] = {};
};

void restart(cudaStream_t stream, const SumTable& sums, ColumnState* states,
             const RestartParams& params);
void set_step(cudaStream_t stream, const SumTable& sums, ColumnState* states);
void set_direction(cudaStream_t stream, const SumTable& sums, ColumnState* states,
                   IterationRecord* history);

}  // namespace quadriga::sparse::cuda
