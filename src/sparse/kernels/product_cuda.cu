// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/product_cuda.cu: q = A*p by blocks of rows on a GPU, with the block's p^H*q.
//
// In SELL-C-sigma a thread has a row, and a warp a slice, whose elements lie side by side. Of dense
// blocks, too, a thread has a row: neighbours share a column, and read the same elements of p. In
// CSR eight threads have a row: each sums every eighth element, then they add up by halves.
#include <quadriga/error.h>

#include "sparse/kernels/launches_cuda.h"
#include "sparse/kernels/one_reduction_launches_cuda.h"
#include "sparse/kernels/one_reduction_scalars.h"
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

/// What is read once needn't stay in a cache.
template <class Number>
__device__ Number streamed(const Number* from) {
  return __ldcs(from);
}
__device__ ComplexNumber<float> streamed(const ComplexNumber<float>* from) {
  const float2 pair = __ldcs(reinterpret_cast<const float2*>(from));
  return {pair.x, pair.y};
}
__device__ ComplexNumber<double> streamed(const ComplexNumber<double>* from) {
  const double2 pair = __ldcs(reinterpret_cast<const double2*>(from));
  return {pair.x, pair.y};
}

/// A thread's row of a slice: where its elements begin, and how many, or dense blocks, there are.
struct SliceRow {
  std::int32_t row = -1;
  std::int32_t length = 0;
  std::int64_t first = 0;
};

/// The row at a place of a block of rows; none beyond its end.
template <int D, class N>
__device__ SliceRow row_at(const DevicePart<N>& a, std::int64_t block, int place) {
  constexpr int slice_rows = warp * D;
  const int slices = (static_cast<int>(a.block_rows) + slice_rows - 1) / slice_rows;
  const std::int64_t slice = block * slices + place / slice_rows;
  if (place >= slices * slice_rows || slice >= a.slices) return {};
  const std::int64_t at = slice * warp + place % slice_rows / D;
  return {a.order[at], a.lengths[at], a.offsets[slice]};
}

/// Columns of a thread's row, one for each element or dense block.
class WideColumns {
 public:
  template <class N>
  __device__ WideColumns(const DevicePart<N>& a, std::int64_t first, int r)
      : columns_(a.columns + first + r) {}
  __device__ std::int32_t at(int u) const { return streamed(columns_ + u * warp); }
  __device__ void advance(int count) { columns_ += count * warp; }

 private:
  const std::int32_t* columns_;
};
/// Those of a slice have a base for each element.
class NarrowColumns {
 public:
  template <class N>
  __device__ NarrowColumns(const DevicePart<N>& a, std::int64_t first, int r)
      : steps_(a.steps + first + r), bases_(a.bases + first / warp) {}
  __device__ std::int32_t at(int u) const {
    return bases_[u] + static_cast<std::int32_t>(streamed(steps_ + u * warp));
  }
  __device__ void advance(int count) {
    steps_ += count * warp;
    bases_ += count;
  }

 private:
  const std::uint16_t* steps_;
  const std::int32_t* bases_;
};

/// Adds U elements of a row, or dense blocks, as far as `left` are there. All are read before the
/// first is added: a row's end costs no more than its middle.
template <int U, int D, class Columns, class N, int K>
__device__ void add_elements(int left, const N* values, const Columns& columns, const N* p,
                             int stride, Sums<N, K> (&sums)[D]) {
  std::int32_t from[U];
  N elements[U][D];
#pragma unroll
  for (int u = 0; u < U; ++u) from[u] = u < left ? columns.at(u) : 0;
#pragma unroll
  for (int u = 0; u < U; ++u)
#pragma unroll
    for (int c = 0; c < D; ++c)
      elements[u][c] = u < left ? streamed(values + (u * D + c) * (warp * D)) : N{};
  N right[U][D][K];
#pragma unroll
  for (int u = 0; u < U; ++u)
#pragma unroll
    for (int c = 0; c < D; ++c)
#pragma unroll
      for (int k = 0; k < K; ++k)
        right[u][c][k] =
            u < left ? p[(static_cast<std::int64_t>(from[u]) * D + c) * stride + k] : N{};
#pragma unroll
  for (int u = 0; u < U; ++u)
    if (u < left)
#pragma unroll
      for (int c = 0; c < D; ++c) sums[c].add(elements[u][c], right[u][c]);
}

/// Rows of slices of elements (D is 1) or of dense blocks. The next row is looked up while the
/// elements of one arrive.
template <class N, int K, int D, int U, class Columns>
__device__ void slice_rows(const DevicePart<N>& a, std::int64_t block, const DeviceVectors<N>& v,
                           int column, double (&dots)[K]) {
  const N* const p = v.p + column;
  const int places = (static_cast<int>(a.block_rows) + warp * D - 1) / (warp * D) * (warp * D);
  SliceRow next = row_at<D>(a, block, static_cast<int>(threadIdx.x));
  for (int at = static_cast<int>(threadIdx.x); at < places; at += threads) {
    const SliceRow row = next;
    next = row_at<D>(a, block, at + threads);
    const int place = at % (warp * D);
    const N* values = a.values + row.first * (D * D) + place;
    Columns columns(a, row.first, place / D);
    Sums<N, K> sums[D];
    for (int left = row.length; left > 0; left -= U) {
      add_elements<U>(left, values, columns, p, v.columns, sums);
      values += U * D * (warp * D);
      columns.advance(U);
    }
#pragma unroll
    for (int c = 1; c < D; ++c)
#pragma unroll
      for (int k = 0; k < K; ++k) sums[0].values[k] = sum(sums[0].values[k], sums[c].values[k]);
    if (row.row >= 0)
      keep(v, static_cast<std::int64_t>(row.row) * D + place % D, column, sums[0], dots);
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

template <int K>
__device__ void set_steps(const Ending& ending, const double* sums, std::int64_t blocks,
                          int columns, int column) {
  for (int c = column; c < column + K; ++c) {
    if (ending.states[c].status != IterationStatus::running) continue;
    const double pq = sum_of_part(sums, blocks, columns, 0, c);
    if (!ending.step_sums) {
      if (threadIdx.x == 0) sparse::set_step(ending.states[c], pq);
      continue;
    }
    const double rz = sum_of_part(ending.step_sums, blocks, columns, 0, c);
    const double rr = sum_of_part(ending.step_sums, blocks, columns, 1, c);
    if (threadIdx.x > 0) continue;
    sparse::end_step(ending.states[c], {rz, rr, 0}, 0);
    keep_record(ending.states[c], ending.history, columns, c);
    set_step_without_product(ending.states[c], pq);
  }
}

/// How rows are stored: CSR, or slices of dense blocks of D x D elements; 1: of elements.
constexpr int by_rows = 0;
/// Slices of elements with narrow columns.
constexpr int narrow = -1;

/// Elements, or dense blocks, of a row that are read together, and blocks of threads that share a
/// multiprocessor at least; 0: as it comes.
template <int Together, int Resident>
struct Reading {
  static constexpr int together = Together;
  static constexpr int resident = Resident;
};

template <class N, int K, int D, class R>
__global__ void __launch_bounds__(threads, R::resident)
    multiply_blocks(DevicePart<N> a, std::int64_t first, DeviceVectors<N> v, int column,
                    const ColumnState* states, double* sums, Ending ending) {
  bool runs = states == nullptr;
  for (int c = 0; !runs && c < K; ++c) runs = states[column + c].status == IterationStatus::running;
  if (!runs) return;
  // Where no block is border they stand in their own order.
  const std::int64_t place = first + blockIdx.x;
  const std::int64_t block = a.block_order ? a.block_order[place] : place;
  double dots[K] = {};
  if constexpr (D == by_rows)
    csr_rows<N, K>(a, block, v, column, dots);
  else if constexpr (D == narrow)
    slice_rows<N, K, 1, R::together, NarrowColumns>(a, block, v, column, dots);
  else
    slice_rows<N, K, D, R::together, WideColumns>(a, block, v, column, dots);
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
  // Measured on an H200 for numbers of 8 bytes (decision 98); wider ones need more registers.
  constexpr bool is_one_word = sizeof(N) * K <= sizeof(double);
  using Elements = Reading<is_one_word                           ? 8
                           : sizeof(N) * K <= 2 * sizeof(double) ? 4
                                                                 : 2,
                           is_one_word ? 5 : 0>;
  using Blocks = Reading<is_one_word ? 2 : 1, is_one_word ? 5 : 0>;
  if (shape.format == Format::csr) return multiply_blocks<N, K, by_rows, Reading<1, 0>>;
  if (shape.dense_rows == 2) return multiply_blocks<N, K, 2, Blocks>;
  if (shape.dense_rows == 3) return multiply_blocks<N, K, 3, Blocks>;
  if (shape.dense_rows == 4) return multiply_blocks<N, K, 4, Reading<Blocks::together, 0>>;
  if (shape.narrow) return multiply_blocks<N, K, narrow, Elements>;
  return multiply_blocks<N, K, 1, Elements>;
}

template <class T>
void launch_product(cudaStream_t stream, const PartArrays<T>& a, BlockRange range,
                    const PartVectors<T>& v, const ColumnState* states, double* sums,
                    const Ending& ending) {
  if (range.first == range.last) return;
  using N = DeviceType<T>;
  const auto launch = [&]<int K>(std::integral_constant<int, K>, int column) {
    const auto kernel = kernel_for<N, K>(a.shape());
    require(a.shape().format == Format::csr || a.shape().slice_rows == warp,
            "slices on a GPU have 32 rows");
    DevicePart<N> part = device_part(a);
    if (a.shape().inner_blocks == a.shape().blocks) part.block_order = nullptr;
    kernel<<<static_cast<unsigned>(range.last - range.first), threads, 0, stream>>>(
        part, range.first, device_vectors(v), column, states, sums, ending);
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
  launch_product(stream, a, {0, a.shape().blocks}, v, states, sums, {states, nullptr, arrived});
}

template <class T>
void multiply_and_set_scalars(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
                              ColumnState* states, double* sums, const double* step_sums,
                              IterationRecord* history, unsigned* arrived) {
  launch_product(stream, a, {0, a.shape().blocks}, v, states, sums,
                 {states, history, arrived, step_sums});
}

#define QUADRIGA_INSTANTIATE(T)                                                                  \
  template void multiply_and_set_scalars(cudaStream_t, const PartArrays<T>&,                     \
                                         const PartVectors<T>&, ColumnState*, double*,           \
                                         const double*, IterationRecord*, unsigned*);            \
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
