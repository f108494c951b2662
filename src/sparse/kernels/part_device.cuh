// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/part_device.cuh: a part's arrays as kernels on GPUs get them, and their sums.
#pragma once

#include <cmath>
#include <complex>

#include "device/cuda/cuda_check.h"
#include "sparse/kernels/number.h"
#include "sparse/kernels/part_codelets.h"
#include "sparse/kernels/part_kernels.h"

namespace quadriga::sparse::cuda {

/// std::complex<Real>, bit by bit.
template <class Real>
struct alignas(2 * sizeof(Real)) ComplexNumber {
  Real real;
  Real imag;
};

template <class T>
struct DeviceTypeOf {
  using type = T;
};
template <class Real>
struct DeviceTypeOf<std::complex<Real>> {
  using type = ComplexNumber<Real>;
};
/// What kernels on a device take for T.
template <class T>
using DeviceType = typename DeviceTypeOf<T>::type;

template <class Real>
__device__ Real product(Real x, Real y) {
  return x * y;
}
template <class Real>
__device__ ComplexNumber<Real> product(ComplexNumber<Real> x, ComplexNumber<Real> y) {
  return {x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real};
}

template <class Real>
__device__ Real sum(Real x, Real y) {
  return x + y;
}
template <class Real>
__device__ ComplexNumber<Real> sum(ComplexNumber<Real> x, ComplexNumber<Real> y) {
  return {x.real + y.real, x.imag + y.imag};
}

/// Of a block; the largest block of rows has two rows a thread.
constexpr int threads = 256;
constexpr int warp = 32;

/// PartArrays and PartVectors by addresses on the device.
template <class N>
struct DevicePart {
  const std::int64_t* offsets;
  const std::int32_t* lengths;
  const std::int32_t* order;
  const std::int32_t* block_order;
  const std::int32_t* columns;
  const std::int32_t* bases;  ///< Of narrow SELL, with `steps` for columns.
  const std::uint16_t* steps;
  const N* values;
  const N* inverses;  ///< M; null: the identity.
  std::int64_t rows;
  std::int64_t block_rows;
  std::int64_t blocks;
  std::int64_t slices;
  int inverse_rows;
};

template <class N>
struct DeviceVectors {
  int columns;
  N* p;
  N* q;
  N* r;
  N* z;  ///< Null: M is blocks of rows.
  N* d;
  N* s;
};

template <class T>
DevicePart<DeviceType<T>> device_part(const PartArrays<T>& a) {
  const auto numbers = [](const T* from) { return reinterpret_cast<const DeviceType<T>*>(from); };
  const PartShape& shape = a.shape();
  return {a.offsets(),      a.lengths(),  a.order(),           a.block_order(),       a.columns(),
          a.bases(),        a.steps(),    numbers(a.values()), numbers(a.inverses()), shape.rows,
          shape.block_rows, shape.blocks, shape.slices,        shape.inverse_rows};
}

template <class T>
DeviceVectors<DeviceType<T>> device_vectors(const PartVectors<T>& v) {
  const auto numbers = [](T* from) { return reinterpret_cast<DeviceType<T>*>(from); };
  return {static_cast<int>(v.columns),
          numbers(v.p),
          numbers(v.q),
          numbers(v.r),
          numbers(v.z),
          numbers(v.d),
          numbers(v.s)};
}

/// Re(x^H*y), in double precision.
template <class Real>
__device__ double dot(Real x, Real y) {
  return static_cast<double>(x) * static_cast<double>(y);
}
template <class Real>
__device__ double dot(ComplexNumber<Real> x, ComplexNumber<Real> y) {
  return dot(x.real, y.real) + dot(x.imag, y.imag);
}

template <class Real>
__device__ Real times_real(Real x, double factor) {
  return x * static_cast<Real>(factor);
}
template <class Real>
__device__ ComplexNumber<Real> times_real(ComplexNumber<Real> x, double factor) {
  return {x.real * static_cast<Real>(factor), x.imag * static_cast<Real>(factor)};
}

template <class Real>
__device__ Real difference(Real x, Real y) {
  return x - y;
}
template <class Real>
__device__ ComplexNumber<Real> difference(ComplexNumber<Real> x, ComplexNumber<Real> y) {
  return {x.real - y.real, x.imag - y.imag};
}

/// An element of M*r, where M has blocks of `size` rows; 1: a diagonal, 0: the identity.
template <class N>
__device__ N scaled(const N* inverses, int size, const N* r, int columns, std::int64_t row,
                    int column) {
  if (size == 0) return r[row * columns + column];
  if (size == 1) return product(inverses[row], r[row * columns + column]);
  const N* const line = inverses + row * size;
  const N* const from = r + row / size * size * columns + column;
  N total = product(line[0], from[0]);
  for (int j = 1; j < size; ++j) total = sum(total, product(line[j], from[j * columns]));
  return total;
}

/// The sum of all threads of a block, known to thread 0: by halves of a warp, then warp by warp.
__device__ inline double sum_of_block(double value) {
  __shared__ double sums[threads / warp];
  for (int other = warp / 2; other > 0; other /= 2)
    value += __shfl_down_sync(0xffffffff, value, other);
  __syncthreads();  // Who read the sums before has done so.
  if (threadIdx.x % warp == 0) sums[threadIdx.x / warp] = value;
  __syncthreads();
  double total = 0;
  if (threadIdx.x == 0)
    for (const double each : sums) total += each;
  return total;
}

/// What is kept of the iteration that has just ended. By one thread.
__device__ inline void keep_record(const ColumnState& state, IterationRecord* history, int columns,
                                   int column) {
  history[(state.iterations - 1) % history_length * columns + column] = {std::sqrt(state.squared),
                                                                         state.alpha, state.beta};
}

/// The residual after a step is known, of a column that runs. By one thread.
__device__ inline void end_iteration(ColumnState& state, const ColumnSums& sums,
                                     IterationRecord* history, int columns, int column) {
  sparse::set_direction(state, sums);
  keep_record(state, history, columns, column);
}

/// A quantity of all blocks of rows of a single part, known to thread 0: the order of additions is
/// that of several parts (scalars_cuda.cu).
__device__ inline double sum_of_part(const double* sums, std::int64_t blocks, int columns,
                                     int quantity, int column) {
  const double* const first = sums + quantity * blocks * columns + column;
  double total = 0;
  for (std::int64_t block = threadIdx.x; block < blocks; block += threads)
    total += first[block * columns];
  return sum_of_block(total);
}

/// Whether all other blocks of the grid have been here: then what their threads 0 wrote before can
/// be read. `arrived` is zero before the grid and after it.
__device__ inline bool is_last_block(unsigned* arrived) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last) __threadfence();
  return is_last;
}

/// What the last block of threads does with the sums of all.
struct Ending {
  ColumnState* states = nullptr;       ///< Null: nothing.
  IterationRecord* history = nullptr;  ///< Of what ends an iteration.
  unsigned* arrived = nullptr;
  const double* step_sums = nullptr;  ///< Of a product whose scalars follow from these, too.
};

/// Blocks of threads for so many elements.
inline unsigned grid_for(std::int64_t count) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

/// What a launch did. Errors: as quadriga::cuda::check().
inline void check_launch(const char* what) { quadriga::cuda::check(cudaGetLastError(), what); }

}  // namespace quadriga::sparse::cuda
