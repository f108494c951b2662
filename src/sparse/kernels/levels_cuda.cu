// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/levels_cuda.cu: what a smoother does with the vectors of a level on a GPU.
#include "sparse/kernels/launches_cuda.h"
#include "sparse/kernels/part_device.cuh"

namespace quadriga::sparse::cuda {
namespace {

__device__ std::int64_t element() {
  return static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
}

__device__ bool runs(const ColumnState* states, int column) {
  return !states || states[column].status == IterationStatus::running;
}

template <class N>
__global__ void subtract_products(DeviceVectors<N> v, std::int64_t count,
                                  const ColumnState* states) {
  const std::int64_t at = element();
  if (at < count && runs(states, static_cast<int>(at % v.columns)))
    v.s[at] = difference(v.s[at], v.q[at]);
}

/// A thread has an element. It subtracts itself only where M has no blocks, as these need elements
/// of other threads.
template <class N>
__global__ void smooth(DevicePart<N> a, DeviceVectors<N> v, Relaxation relaxation,
                       const ColumnState* states) {
  const std::int64_t at = element();
  if (at >= a.rows * v.columns) return;
  const auto column = static_cast<int>(at % v.columns);
  if (!runs(states, column)) return;
  if (relaxation.subtracts) v.s[at] = difference(v.s[at], v.q[at]);
  N d = times_real(scaled(a.inverses, a.inverse_rows, v.s, v.columns, at / v.columns, column),
                   relaxation.weight);
  if (relaxation.momentum != 0) d = sum(d, times_real(v.d[at], relaxation.momentum));
  v.d[at] = d;
  v.z[at] = relaxation.is_first ? d : sum(v.z[at], d);
}

template <class N>
__global__ void add_corrections(DeviceVectors<N> v, std::int64_t count, const ColumnState* states) {
  const std::int64_t at = element();
  if (at < count && runs(states, static_cast<int>(at % v.columns))) v.z[at] = sum(v.z[at], v.d[at]);
}

template <class N>
__global__ void __launch_bounds__(threads)
    sum_blocks(DevicePart<N> a, DeviceVectors<N> v, const ColumnState* states, double* sums) {
  const std::int64_t first = blockIdx.x * a.block_rows;
  const std::int64_t last = min(first + a.block_rows, a.rows);
  for (int c = 0; c < v.columns; ++c) {
    if (!runs(states, c)) continue;
    double rz = 0;
    for (std::int64_t row = first + threadIdx.x; row < last; row += threads)
      rz += dot(v.r[row * v.columns + c], v.z[row * v.columns + c]);
    rz = sum_of_block(rz);
    if (threadIdx.x == 0) sums[blockIdx.x * v.columns + c] = rz;
  }
}

}  // namespace

template <class T>
void relax(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
           const Relaxation& relaxation, const ColumnState* states) {
  const std::int64_t count = a.shape().rows * v.columns;
  if (count == 0) return;
  Relaxation left = relaxation;
  if (relaxation.subtracts && (a.shape().inverse_rows > 1 || !relaxation.smooths)) {
    subtract_products<<<grid_for(count), threads, 0, stream>>>(device_vectors(v), count, states);
    check_launch("the residual of a level");
    left.subtracts = false;
  }
  if (!relaxation.smooths) return;
  smooth<<<grid_for(count), threads, 0, stream>>>(device_part(a), device_vectors(v), left, states);
  check_launch("a smoother");
}

template <class T>
void correct(cudaStream_t stream, std::int64_t rows, const PartVectors<T>& v,
             const ColumnState* states) {
  const std::int64_t count = rows * v.columns;
  if (count == 0) return;
  add_corrections<<<grid_for(count), threads, 0, stream>>>(device_vectors(v), count, states);
  check_launch("a correction");
}

template <class T>
void sum_products(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
                  const ColumnState* states, double* sums) {
  if (a.shape().blocks == 0) return;
  sum_blocks<<<static_cast<unsigned>(a.shape().blocks), threads, 0, stream>>>(
      device_part(a), device_vectors(v), states, sums);
  check_launch("sums of a preconditioner");
}

#define QUADRIGA_INSTANTIATE(T)                                                                 \
  template void relax(cudaStream_t, const PartArrays<T>&, const PartVectors<T>&,                \
                      const Relaxation&, const ColumnState*);                                   \
  template void correct(cudaStream_t, std::int64_t, const PartVectors<T>&, const ColumnState*); \
  template void sum_products(cudaStream_t, const PartArrays<T>&, const PartVectors<T>&,         \
                             const ColumnState*, double*);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::sparse::cuda
