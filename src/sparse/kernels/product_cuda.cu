// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/product_cuda.cu: q = A*p by blocks of rows on a GPU, with the block's p^H*q.
//
// In SELL-C-sigma a thread has a row, and a warp a slice, whose elements lie side by side. Of dense
// blocks, too, a thread has a row: neighbours share a column, and read the same elements of p. In
// CSR eight threads have a row: each sums every eighth element, then they add up by halves.
#include "sparse/kernels/launches_cuda.h"
#include "sparse/kernels/part_device.cuh"

namespace quadriga::sparse::cuda {
namespace {

constexpr int row_threads = 8;   // In CSR.
constexpr int most_columns = 4;  // That are summed at once.

/// K neighbouring columns of the vectors from `column` on.
template <class N, int K>
struct Sums {
  N values[K] = {};

  __device__ void add(N element, const N* p) {
    for (int c = 0; c < K; ++c) values[c] = sum(values[c], product(element, p[c]));
  }
};

template <class N, int K>
__device__ void keep(const DeviceVectors<N>& v, std::int64_t row, int column,
                     const Sums<N, K>& sums, double (&dots)[K]) {
  for (int c = 0; c < K; ++c) {
    v.q[row * v.columns + column + c] = sums.values[c];
    dots[c] += dot(v.p[row * v.columns + column + c], sums.values[c]);
  }
}

template <class N, int K>
__device__ void sell_rows(const DevicePart<N>& a, std::int64_t block, const DeviceVectors<N>& v,
                          int column, double (&dots)[K]) {
  const int height = a.slice_rows;
  const int r = static_cast<int>(threadIdx.x) % height;
  const std::int64_t slices = a.block_rows / height;
  const std::int64_t last = min((block + 1) * slices, a.slices);
  for (std::int64_t slice = block * slices + threadIdx.x / height; slice < last;
       slice += threads / height) {
    const std::int32_t row = a.order[slice * height + r];
    const std::int32_t length = a.lengths[slice * height + r];
    const std::int64_t first = a.offsets[slice] + r;
    Sums<N, K> sums;
#pragma unroll 4
    for (std::int32_t j = 0; j < length; ++j) {
      const std::int64_t at = first + static_cast<std::int64_t>(j) * height;
      sums.add(a.values[at], v.p + static_cast<std::int64_t>(a.columns[at]) * v.columns + column);
    }
    if (row >= 0) keep(v, row, column, sums, dots);
  }
}

/// What is read once needn't stay in a cache.
template <class Real>
__device__ Real streamed(const Real* from) {
  return __ldcs(from);
}
template <class Real>
__device__ ComplexNumber<Real> streamed(const ComplexNumber<Real>* from) {
  return {__ldcs(&from->real), __ldcs(&from->imag)};
}

template <class N, int K, int D>
__device__ void dense_rows(const DevicePart<N>& a, std::int64_t block, const DeviceVectors<N>& v,
                           int column, double (&dots)[K]) {
  const int height = a.slice_rows;
  const int slice_rows = height * D;
  const int slices = static_cast<int>(a.block_rows) / slice_rows;
  for (int at = static_cast<int>(threadIdx.x); at < a.block_rows; at += threads) {
    const std::int64_t slice = block * slices + at / slice_rows;
    if (slice >= a.slices) break;
    const int place = at % slice_rows;
    const int r = place / D;
    const std::int32_t row = a.order[slice * height + r];
    const std::int32_t length = a.lengths[slice * height + r];
    const std::int64_t first = a.offsets[slice];
    const N* values = a.values + first * (D * D) + place;
    const std::int32_t* columns = a.columns + first + r;
    Sums<N, K> sums[D];
#pragma unroll 2
    for (std::int32_t j = 0; j < length; ++j, columns += height, values += D * slice_rows) {
      const std::int64_t from = static_cast<std::int64_t>(__ldcs(columns)) * D;
#pragma unroll
      for (int c = 0; c < D; ++c)
        sums[c].add(streamed(values + c * slice_rows), v.p + (from + c) * v.columns + column);
    }
#pragma unroll
    for (int c = 1; c < D; ++c)
      for (int k = 0; k < K; ++k) sums[0].values[k] = sum(sums[0].values[k], sums[c].values[k]);
    if (row >= 0) keep(v, static_cast<std::int64_t>(row) * D + place % D, column, sums[0], dots);
  }
}

template <class Real>
__device__ Real from_lane(Real value, int other) {
  return __shfl_xor_sync(0xffffffff, value, other, row_threads);
}
template <class Real>
__device__ ComplexNumber<Real> from_lane(ComplexNumber<Real> value, int other) {
  return {from_lane(value.real, other), from_lane(value.imag, other)};
}

template <class N, int K>
__device__ void csr_rows(const DevicePart<N>& a, std::int64_t block, const DeviceVectors<N>& v,
                         int column, double (&dots)[K]) {
  const int lane = static_cast<int>(threadIdx.x) % row_threads;
  const std::int64_t first = block * a.block_rows;
  const std::int64_t last = min(first + a.block_rows, a.rows);
  // All threads of a warp take each turn, for they exchange sums.
  for (std::int64_t begin = first; begin < last; begin += threads / row_threads) {
    const std::int64_t row = begin + threadIdx.x / row_threads;
    Sums<N, K> sums;
    if (row < last)
      for (std::int64_t at = a.offsets[row] + lane; at < a.offsets[row + 1]; at += row_threads)
        sums.add(a.values[at], v.p + static_cast<std::int64_t>(a.columns[at]) * v.columns + column);
    for (int other = row_threads / 2; other > 0; other /= 2)
      for (int c = 0; c < K; ++c)
        sums.values[c] = sum(sums.values[c], from_lane(sums.values[c], other));
    if (row < last && lane == 0) keep(v, row, column, sums, dots);
  }
}

/// What the last block of threads does with the sums of all.
struct Ending {
  ColumnState* states = nullptr;  ///< Null: nothing.
  unsigned* arrived = nullptr;
};

template <int K>
__device__ void set_steps(const Ending& ending, const double* sums, std::int64_t blocks,
                          int columns, int column) {
  for (int c = column; c < column + K; ++c) {
    if (ending.states[c].status != Status::running) continue;
    const double pq = sum_of_part(sums, blocks, columns, 0, c);
    if (threadIdx.x == 0) sparse::set_step(ending.states[c], pq);
  }
}

/// How rows are stored: CSR, or slices of dense blocks of D x D elements; 1: of elements.
constexpr int by_rows = 0;

template <class N, int K, int D>
__global__ void __launch_bounds__(threads)
    multiply_blocks(DevicePart<N> a, std::int64_t first, DeviceVectors<N> v, int column,
                    const ColumnState* states, double* sums, Ending ending) {
  bool runs = states == nullptr;
  for (int c = 0; !runs && c < K; ++c) runs = states[column + c].status == Status::running;
  if (!runs) return;
  const std::int64_t block = a.block_order[first + blockIdx.x];
  double dots[K] = {};
  if constexpr (D == by_rows)
    csr_rows<N, K>(a, block, v, column, dots);
  else if constexpr (D == 1)
    sell_rows<N, K>(a, block, v, column, dots);
  else
    dense_rows<N, K, D>(a, block, v, column, dots);
  if (sums == nullptr) return;
  for (int c = 0; c < K; ++c) {
    const double total = sum_of_block(dots[c]);
    if (threadIdx.x == 0) sums[block * v.columns + column + c] = total;
  }
  if (ending.states && is_last_block(ending.arrived))
    set_steps<K>(ending, sums, a.blocks, v.columns, column);
}

template <class N, int K>
auto kernel_for(const PartShape& shape) {
  if (shape.format == Format::csr) return multiply_blocks<N, K, by_rows>;
  if (shape.dense_rows == 2) return multiply_blocks<N, K, 2>;
  if (shape.dense_rows == 3) return multiply_blocks<N, K, 3>;
  if (shape.dense_rows == 4) return multiply_blocks<N, K, 4>;
  return multiply_blocks<N, K, 1>;
}

template <class T>
void launch_product(cudaStream_t stream, const PartArrays<T>& a, BlockRange range,
                    const PartVectors<T>& v, const ColumnState* states, double* sums,
                    const Ending& ending) {
  if (range.first == range.last) return;
  using N = DeviceType<T>;
  const auto launch = [&]<int K>(std::integral_constant<int, K>, int column) {
    const auto kernel = kernel_for<N, K>(a.shape());
    kernel<<<static_cast<unsigned>(range.last - range.first), threads, 0, stream>>>(
        device_part(a), range.first, device_vectors(v), column, states, sums, ending);
    check_launch("a sparse product");
  };
  int column = 0;
  for (; column + most_columns <= v.columns; column += most_columns)
    launch(std::integral_constant<int, most_columns>{}, column);
  for (; column < v.columns; ++column) launch(std::integral_constant<int, 1>{}, column);
}

}  // namespace

template <class T>
void multiply(cudaStream_t stream, const PartArrays<T>& a, BlockRange range,
              const PartVectors<T>& v, const ColumnState* states, double* sums) {
  launch_product(stream, a, range, v, states, sums, {});
}

template <class T>
void multiply_and_set_step(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
                           ColumnState* states, double* sums, unsigned* arrived) {
  launch_product(stream, a, {0, a.shape().blocks}, v, states, sums, {states, arrived});
}

#define QUADRIGA_INSTANTIATE(T)                                                                  \
  template void multiply(cudaStream_t, const PartArrays<T>&, BlockRange, const PartVectors<T>&,  \
                         const ColumnState*, double*);                                           \
  template void multiply_and_set_step(cudaStream_t, const PartArrays<T>&, const PartVectors<T>&, \
                                      ColumnState*, double*, unsigned*);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::sparse::cuda
