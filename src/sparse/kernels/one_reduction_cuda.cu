// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/one_reduction_cuda.cu: the steps of methods with one reduction an iteration on
// a GPU: all recurrences of a block of rows by one block of threads.
#include "sparse/kernels/one_reduction_launches_cuda.h"
#include "sparse/kernels/one_reduction_scalars.h"
#include "sparse/kernels/part_device.cuh"
#include "sparse/kernels/sums_device.cuh"

namespace quadriga::sparse::cuda {
namespace {

/// Recurrences by addresses on the device.
template <class N>
struct DeviceRecurrences {
  N* direction;
  N* product;
  N* u;  ///< Null, like the next three: not pipelined.
  N* w;
  N* m_product;
  N* am_product;
};

template <class T>
DeviceRecurrences<DeviceType<T>> device_recurrences(const Recurrences<T>& more) {
  const auto numbers = [](T* from) { return reinterpret_cast<DeviceType<T>*>(from); };
  return {numbers(more.direction), numbers(more.product),   numbers(more.u),
          numbers(more.w),         numbers(more.m_product), numbers(more.am_product)};
}

/// vector = z + beta*vector, which may be anything where beta is zero. Returns the new element.
template <class N>
__device__ N turned(N* vector, N z, double beta) {
  return *vector = beta == 0 ? z : sum(z, times_real(*vector, beta));
}

template <class N>
__device__ N reduced(N* vector, N by, double alpha) {
  return *vector = difference(*vector, times_real(by, alpha));
}

/// One row and column; returns r, and u where it is carried.
template <bool pipelined, class N>
__device__ void advance(const DeviceVectors<N>& v, const DeviceRecurrences<N>& more,
                        std::int64_t at, const ColumnState& state, N* x) {
  const double alpha = state.alpha;
  const double beta = state.beta;
  const N direction = turned(more.direction + at, pipelined ? more.u[at] : v.p[at], beta);
  const N product = turned(more.product + at, pipelined ? more.w[at] : v.q[at], beta);
  x[at] = sum(x[at], times_real(direction, alpha));
  reduced(v.r + at, product, alpha);
  if constexpr (pipelined) {
    const N am_product = turned(more.am_product + at, v.q[at], beta);
    const N m_product = turned(more.m_product + at, v.p[at], beta);
    reduced(more.u + at, m_product, alpha);
    reduced(more.w + at, am_product, alpha);
  }
}

__device__ void set_all_scalars(const Ending& ending, const double* sums, std::int64_t blocks,
                                int columns) {
  for (int c = 0; c < columns; ++c) {
    if (ending.states[c].status != IterationStatus::running) continue;
    const double rz = sum_of_part(sums, blocks, columns, 0, c);
    const double rr = sum_of_part(sums, blocks, columns, 1, c);
    const double uw = sum_of_part(sums, blocks, columns, 2, c);
    if (threadIdx.x > 0) continue;
    sparse::end_step(ending.states[c], {rz, rr, 0}, period_of(CgMethod::pipelined));
    keep_record(ending.states[c], ending.history, columns, c);
    set_step_without_product(ending.states[c], uw);
  }
}

template <bool pipelined, class N>
__global__ void __launch_bounds__(threads)
    step_blocks(DevicePart<N> a, DeviceVectors<N> v, DeviceRecurrences<N> more,
                const ColumnState* states, N* x, double* sums, Ending ending) {
  const std::int64_t first = blockIdx.x * a.block_rows;
  const std::int64_t last = min(first + a.block_rows, a.rows);
  const std::int64_t all = a.blocks * v.columns;
  for (int c = 0; c < v.columns; ++c) {
    if (states[c].status != IterationStatus::running) continue;
    for (std::int64_t row = first + threadIdx.x; row < last; row += threads)
      advance<pipelined>(v, more, row * v.columns + c, states[c], x);
    // Blocks of M need what other threads wrote.
    if (a.inverse_rows > 1) __syncthreads();
    double rz = 0;
    double rr = 0;
    double uw = 0;
    for (std::int64_t row = first + threadIdx.x; row < last; row += threads) {
      const std::int64_t at = row * v.columns + c;
      const N next =
          scaled(a.inverses, a.inverse_rows, pipelined ? more.w : v.r, v.columns, row, c);
      v.p[at] = next;
      const N r = v.r[at];
      rr += dot(r, r);
      rz += dot(r, pipelined ? more.u[at] : next);
      if constexpr (pipelined) uw += dot(more.u[at], more.w[at]);
    }
    double* const out = sums + blockIdx.x * v.columns + c;
    rz = sum_of_block(rz);
    rr = sum_of_block(rr);
    if constexpr (pipelined) uw = sum_of_block(uw);
    if (threadIdx.x > 0) continue;
    out[0] = rz;
    out[all] = rr;
    if constexpr (pipelined) out[2 * all] = uw;
  }
  if constexpr (pipelined)
    if (ending.states && is_last_block(ending.arrived))
      set_all_scalars(ending, sums, a.blocks, v.columns);
}

template <class N>
__global__ void scale_rows(const N* from, const N* inverses, int size, std::int64_t count,
                           int columns, N* to) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (at < count)
    to[at] = scaled(inverses, size, from, columns, at / columns, static_cast<int>(at % columns));
}

template <class Word>
__global__ void copy_words(const Word* from, std::int64_t count, Word* to) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (at < count) to[at] = from[at];
}

template <class Word>
void launch_copy(cudaStream_t stream, void* to, const void* from, std::size_t bytes) {
  const auto count = static_cast<std::int64_t>(bytes / sizeof(Word));
  copy_words<<<grid_for(count), threads, 0, stream>>>(static_cast<const Word*>(from), count,
                                                      static_cast<Word*>(to));
  check_launch("a copy by a kernel");
}

template <class N>
__global__ void __launch_bounds__(threads)
    sum_blocks(DevicePart<N> a, const N* u, const N* w, int columns, double* sums) {
  const std::int64_t first = blockIdx.x * a.block_rows;
  const std::int64_t last = min(first + a.block_rows, a.rows);
  for (int c = 0; c < columns; ++c) {
    double total = 0;
    for (std::int64_t row = first + threadIdx.x; row < last; row += threads)
      total += dot(u[row * columns + c], w[row * columns + c]);
    total = sum_of_block(total);
    if (threadIdx.x == 0) sums[blockIdx.x * columns + c] = total;
  }
}

__global__ void __launch_bounds__(threads) set_steps_alone(SumTable table, ColumnState* states) {
  for (int c = 0; c < table.columns; ++c) {
    if (states[c].status != IterationStatus::running) continue;
    const double uw = sum_of_parts(table, 0, c);
    if (threadIdx.x == 0) set_step_without_product(states[c], uw);
  }
}

__global__ void __launch_bounds__(threads)
    end_steps(SumTable table, ColumnState* states, IterationRecord* history) {
  for (int c = 0; c < table.columns; ++c) {
    if (states[c].status != IterationStatus::running) continue;
    const ColumnSums sums{sum_of_parts(table, 0, c), sum_of_parts(table, 1, c), 0};
    if (threadIdx.x > 0) continue;
    sparse::end_step(states[c], sums, 0);
    keep_record(states[c], history, table.columns, c);
  }
}

/// `of_products`: with u^H*w as quantity `quantity`.
__global__ void __launch_bounds__(threads)
    set_scalars_of_all(SumTable of_steps, SumTable of_products, int quantity, std::int64_t period,
                       ColumnState* states, IterationRecord* history) {
  for (int c = 0; c < of_steps.columns; ++c) {
    if (states[c].status != IterationStatus::running) continue;
    const ColumnSums sums{sum_of_parts(of_steps, 0, c), sum_of_parts(of_steps, 1, c), 0};
    const double uw = sum_of_parts(of_products, quantity, c);
    if (threadIdx.x > 0) continue;
    sparse::end_step(states[c], sums, period);
    keep_record(states[c], history, of_steps.columns, c);
    set_step_without_product(states[c], uw);
  }
}

template <class T>
void launch_steps(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
                  const Recurrences<T>& more, const ColumnState* states, T* x, double* sums,
                  const Ending& ending) {
  if (a.shape().blocks == 0) return;
  using N = DeviceType<T>;
  const auto kernel = more.u ? step_blocks<true, N> : step_blocks<false, N>;
  kernel<<<static_cast<unsigned>(a.shape().blocks), threads, 0, stream>>>(
      device_part(a), device_vectors(v), device_recurrences(more), states, reinterpret_cast<N*>(x),
      sums, ending);
  check_launch("the recurrences of a step");
}

}  // namespace

template <class T>
void step_with_recurrences(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
                           const Recurrences<T>& more, const ColumnState* states, T* x,
                           double* sums) {
  launch_steps(stream, a, v, more, states, x, sums, {});
}

template <class T>
void step_and_set_scalars(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
                          const Recurrences<T>& more, ColumnState* states, T* x, double* sums,
                          IterationRecord* history, unsigned* arrived) {
  launch_steps(stream, a, v, more, states, x, sums, {states, history, arrived});
}

template <class T>
void copy_rows(cudaStream_t stream, const PartArrays<T>& a, const T* from, std::int64_t columns,
               bool scaled, T* to) {
  const std::int64_t count = a.shape().rows * columns;
  if (count == 0) return;
  using N = DeviceType<T>;
  scale_rows<<<grid_for(count), threads, 0, stream>>>(
      reinterpret_cast<const N*>(from), reinterpret_cast<const N*>(a.inverses()),
      scaled ? a.shape().inverse_rows : 0, count, static_cast<int>(columns),
      reinterpret_cast<N*>(to));
  check_launch("a copy of rows");
}

void copy_bytes(cudaStream_t stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const auto places = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  const auto copy =
      (places | bytes) % sizeof(uint4) == 0 ? launch_copy<uint4> : launch_copy<unsigned>;
  copy(stream, to, from, bytes);
}

template <class T>
void sum_products_of(cudaStream_t stream, const PartArrays<T>& a, const T* u, const T* w,
                     std::int64_t columns, double* sums) {
  if (a.shape().blocks == 0) return;
  using N = DeviceType<T>;
  sum_blocks<<<static_cast<unsigned>(a.shape().blocks), threads, 0, stream>>>(
      device_part(a), reinterpret_cast<const N*>(u), reinterpret_cast<const N*>(w),
      static_cast<int>(columns), sums);
  check_launch("sums of products");
}

void set_step_alone(cudaStream_t stream, const SumTable& sums, ColumnState* states) {
  set_steps_alone<<<1, threads, 0, stream>>>(sums, states);
  check_launch("the length of a step");
}

void end_step(cudaStream_t stream, const SumTable& sums, ColumnState* states,
              IterationRecord* history) {
  end_steps<<<1, threads, 0, stream>>>(sums, states, history);
  check_launch("the end of a step");
}

void set_scalars(cudaStream_t stream, const SumTable& of_steps, const SumTable& of_products,
                 CgMethod method, ColumnState* states, IterationRecord* history) {
  set_scalars_of_all<<<1, threads, 0, stream>>>(of_steps, of_products,
                                                method == CgMethod::pipelined ? 2 : 0,
                                                period_of(method), states, history);
  check_launch("the scalars of an iteration");
}

#define QUADRIGA_INSTANTIATE(T)                                                                  \
  template void step_with_recurrences(cudaStream_t, const PartArrays<T>&, const PartVectors<T>&, \
                                      const Recurrences<T>&, const ColumnState*, T*, double*);   \
  template void step_and_set_scalars(cudaStream_t, const PartArrays<T>&, const PartVectors<T>&,  \
                                     const Recurrences<T>&, ColumnState*, T*, double*,           \
                                     IterationRecord*, unsigned*);                               \
  template void copy_rows(cudaStream_t, const PartArrays<T>&, const T*, std::int64_t, bool, T*); \
  template void sum_products_of(cudaStream_t, const PartArrays<T>&, const T*, const T*,          \
                                std::int64_t, double*);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::sparse::cuda
