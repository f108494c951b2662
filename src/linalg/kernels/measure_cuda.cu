// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/measure_cuda.cu: norms and checks of a tile on a device.
#include <quadriga/error.h>

#include "device/cuda/cuda_check.h"
#include "linalg/kernels/elements_cuda.h"
#include "linalg/kernels/number_cuda.cuh"

namespace quadriga::kernels::cuda {
namespace {

using quadriga::cuda::check;

constexpr int wide = 1024;

template <class Real>
__device__ double absolute(Real value) {
  return fabs(static_cast<double>(value));
}
template <class Real>
__device__ double absolute(Pair<Real> value) {
  return hypot(static_cast<double>(value.real), static_cast<double>(value.imag));
}
template <class N>
__device__ double square(N value) {
  const double real = real_part(value);
  const double imag = imaginary_part(value);
  return real * real + imag * imag;
}

struct Larger {
  // A NaN stays.
  __device__ double operator()(double x, double y) const { return x <= y || isnan(y) ? y : x; }
};
struct SumOfTwo {
  __device__ double operator()(double x, double y) const { return x + y; }
};

/// Combines one value a thread of a block, in one fixed order; valid in thread 0.
template <int threads, class Combine>
__device__ double reduce(double value, Combine combine) {
  __shared__ double values[threads];
  const unsigned self = threadIdx.x;
  values[self] = value;
  __syncthreads();
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    if (self < half) values[self] = combine(values[self], values[self + half]);
    __syncthreads();
  }
  return values[0];
}

struct Absolute {
  template <class N>
  __device__ double operator()(N value) const {
    return absolute(value);
  }
};
struct Square {
  template <class N>
  __device__ double operator()(N value) const {
    return square(value);
  }
};

/// One block for all of the tile.
template <class N, class Map, class Combine>
__global__ void over_all(KernelTile<const N> a, TileRegion region, double* out, Map map,
                         Combine combine) {
  double value = 0;
  for (int j = 0; j < a.cols; ++j) {
    const Rows inside = rows_in(region, a.rows, j);
    for (int i = inside.begin + static_cast<int>(threadIdx.x); i < inside.end; i += wide)
      value = combine(value, map(a.data[i + static_cast<std::ptrdiff_t>(j) * a.ld]));
  }
  value = reduce<wide>(value, combine);
  if (threadIdx.x == 0) *out = value;
}

/// A block a column.
template <class N, class Map>
__global__ void over_columns(KernelTile<const N> a, TileRegion region, double* out, Map map) {
  for (int j = static_cast<int>(blockIdx.x); j < a.cols; j += static_cast<int>(gridDim.x)) {
    const Rows inside = rows_in(region, a.rows, j);
    double value = 0;
    for (int i = inside.begin + static_cast<int>(threadIdx.x); i < inside.end; i += threads_a_block)
      value += map(a.data[i + static_cast<std::ptrdiff_t>(j) * a.ld]);
    value = reduce<threads_a_block>(value, SumOfTwo{});
    if (threadIdx.x == 0) out[j] = value;
    __syncthreads();
  }
}

/// A thread a row.
template <class N>
__global__ void over_rows(KernelTile<const N> a, TileRegion region, double* out) {
  const int i = static_cast<int>(blockIdx.x) * threads_a_block + static_cast<int>(threadIdx.x);
  if (i >= a.rows) return;
  double value = 0;
  for (int j = 0; j < a.cols; ++j) {
    const Rows inside = rows_in(region, a.rows, j);
    if (i >= inside.begin && i < inside.end)
      value += absolute(a.data[i + static_cast<std::ptrdiff_t>(j) * a.ld]);
  }
  out[i] = value;
}

template <class N>
__global__ void over_diagonal(KernelTile<const N> a, double* out) {
  double value = 0;
  for (int i = static_cast<int>(threadIdx.x); i < min(a.rows, a.cols); i += wide)
    value += log(static_cast<double>(real_part(a.data[i + static_cast<std::ptrdiff_t>(i) * a.ld])));
  value = reduce<wide>(value, SumOfTwo{});
  if (threadIdx.x == 0) *out = value;
}

template <class N>
__global__ void first_bad_minor(KernelTile<const N> a, const int* found, int* info) {
  __shared__ int first;
  if (threadIdx.x == 0) first = *found > 0 ? *found : INT_MAX;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < a.rows; i += wide)
    if (isnan(real_part(a.data[i + static_cast<std::ptrdiff_t>(i) * a.ld])))
      atomicMin(&first, i + 1);
  __syncthreads();
  if (threadIdx.x == 0) *info = first == INT_MAX ? 0 : first;
}

int length_of(Measure what, int rows, int cols) {
  switch (what) {
    case Measure::column_sums:
    case Measure::column_squares:
      return cols;
    case Measure::row_sums:
      return rows;
    default:
      return 1;
  }
}

}  // namespace

template <class T>
void measure(cudaStream_t stream, Measure what, TileRegion region, Input<T> a,
             KernelTile<double> out) {
  const int length = length_of(what, a.rows, a.cols);
  require(out.rows == length && out.cols == 1,
          "measure: the result must be a float64 column of one element for each that is measured");
  if (length == 0) return;
  const KernelTile<const Number<T>> from = numbers(KernelTile<const T>(a));
  const unsigned columns = std::min(static_cast<unsigned>(std::max(a.cols, 1)), most_blocks);
  switch (what) {
    case Measure::max_abs:
      over_all<<<1, wide, 0, stream>>>(from, region, out.data, Absolute{}, Larger{});
      break;
    case Measure::sum_of_squares:
      over_all<<<1, wide, 0, stream>>>(from, region, out.data, Square{}, SumOfTwo{});
      break;
    case Measure::sum_log_diagonal:
      over_diagonal<<<1, wide, 0, stream>>>(from, out.data);
      break;
    case Measure::column_sums:
      over_columns<<<columns, threads_a_block, 0, stream>>>(from, region, out.data, Absolute{});
      break;
    case Measure::column_squares:
      over_columns<<<columns, threads_a_block, 0, stream>>>(from, region, out.data, Square{});
      break;
    case Measure::row_sums:
      over_rows<<<blocks_for(a.rows, threads_a_block), threads_a_block, 0, stream>>>(from, region,
                                                                                     out.data);
      break;
  }
  check(cudaGetLastError(), "measure");
}

template <class T>
void report_minor(cudaStream_t stream, KernelTile<const T> a, const int* found, int* info) {
  first_bad_minor<<<1, wide, 0, stream>>>(numbers(a), found, info);
  check(cudaGetLastError(), "a check of a factor");
}

#define QUADRIGA_INSTANTIATE(T)                                                    \
  template void measure<T>(cudaStream_t, Measure, TileRegion, KernelTile<const T>, \
                           KernelTile<double>);                                    \
  template void report_minor<T>(cudaStream_t, KernelTile<const T>, const int*, int*);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::kernels::cuda
