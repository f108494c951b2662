// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/one_reduction_launches_cuda.h: the kernels of one_reduction.h on a stream;
// arrays are in the memory of its device. They return once queued. Errors: as
// quadriga::cuda::check().
#pragma once

#include "sparse/kernels/launches_cuda.h"
#include "sparse/kernels/one_reduction.h"

namespace quadriga::sparse::cuda {

template <class T>
void step_with_recurrences(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
                           const Recurrences<T>& more, const ColumnState* states, T* x,
                           double* sums);
template <class T>
void copy_rows(cudaStream_t stream, const PartArrays<T>& a, const T* from, std::int64_t columns,
               bool scaled, T* to);
/// By a kernel, as all of an iteration, so that programs have no other nodes; `from` may be in
/// another device's memory. Both are aligned to 4 bytes, of which there is a multiple.
void copy_bytes(cudaStream_t stream, void* to, const void* from, std::size_t bytes);
template <class T>
void sum_products_of(cudaStream_t stream, const PartArrays<T>& a, const T* u, const T* w,
                     std::int64_t columns, double* sums);

/// For a matrix in one part: a kernel's last block of threads also forms the scalars, pipelined
/// with the step, else with the product, with the bits of set_scalars(). `arrived` must be zero,
/// and is zero afterwards.
template <class T>
void step_and_set_scalars(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
                          const Recurrences<T>& more, ColumnState* states, T* x, double* sums,
                          IterationRecord* history, unsigned* arrived);
template <class T>
void multiply_and_set_scalars(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
                              ColumnState* states, double* sums, const double* step_sums,
                              IterationRecord* history, unsigned* arrived);

/// As OneReductionCodelets has them.
void set_step_alone(cudaStream_t stream, const SumTable& sums, ColumnState* states);
void end_step(cudaStream_t stream, const SumTable& sums, ColumnState* states,
              IterationRecord* history);
/// Pipelined both tables are the step's.
void set_scalars(cudaStream_t stream, const SumTable& of_steps, const SumTable& of_products,
                 CgMethod method, ColumnState* states, IterationRecord* history);

}  // namespace quadriga::sparse::cuda
