// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/vectors_cuda.cu: directions, steps and residuals of a part on a GPU.
#include "sparse/kernels/launches_cuda.h"
#include "sparse/kernels/part_device.cuh"

namespace quadriga::sparse::cuda {
namespace {

__device__ std::int64_t element() {
  return static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
}

/// p may be anything where beta is zero.
template <class N>
__device__ void turn_element(N& p, N z, double beta) {
  p = beta == 0 ? z : sum(z, times_real(p, beta));
}

template <class N>
__global__ void turn_rows(DevicePart<N> a, DeviceVectors<N> v, const ColumnState* states) {
  const std::int64_t at = element();
  if (at >= a.rows * v.columns) return;
  const ColumnState& state = states[at % v.columns];
  if (state.status != IterationStatus::running) return;
  const N z = v.z ? v.z[at]
                  : scaled(a.inverses, a.inverse_rows, v.r, v.columns, at / v.columns,
                           static_cast<int>(at % v.columns));
  turn_element(v.p[at], z, state.beta);
}

/// q += partial, and p^H*q of a block where there are sums; null states: all columns run.
template <class N>
__global__ void __launch_bounds__(threads)
    add_to_blocks(DevicePart<N> a, DeviceVectors<N> v, const N* partial, const ColumnState* states,
                  double* sums) {
  const std::int64_t first = blockIdx.x * a.block_rows;
  const std::int64_t last = min(first + a.block_rows, a.rows);
  for (int c = 0; c < v.columns; ++c) {
    if (states && states[c].status != IterationStatus::running) continue;
    double pq = 0;
    for (std::int64_t row = first + threadIdx.x; row < last; row += threads) {
      const std::int64_t at = row * v.columns + c;
      const N q = sum(v.q[at], partial[at]);
      v.q[at] = q;
      if (sums) pq += dot(v.p[at], q);
    }
    if (!sums) continue;
    pq = sum_of_block(pq);
    if (threadIdx.x == 0) sums[blockIdx.x * v.columns + c] = pq;
  }
}

template <class N>
__global__ void turn_arrived(N* p, const N* arrived, std::int64_t count, int columns,
                             const ColumnState* states) {
  const std::int64_t at = element();
  if (at >= count) return;
  const ColumnState& state = states[at % columns];
  if (state.status == IterationStatus::running) turn_element(p[at], arrived[at], state.beta);
}

template <class N>
__global__ void gather_rows(const N* vector, const std::int32_t* rows, const N* inverses, int size,
                            std::int64_t count, int columns, N* out) {
  const std::int64_t at = element();
  if (at >= count * columns) return;
  out[at] =
      scaled(inverses, size, vector, columns, rows[at / columns], static_cast<int>(at % columns));
}

/// Writes r^H*M*r and ||r||^2 of a block and column, of which each thread has its part.
__device__ void write_sums(double rz, double rr, std::int64_t place, std::int64_t all,
                           double* sums) {
  rz = sum_of_block(rz);
  rr = sum_of_block(rr);
  if (threadIdx.x > 0) return;
  sums[place] = rz;
  sums[all + place] = rr;
}

/// Adds to r^H*M*r and ||r||^2 what a thread's rows of a block contribute. With blocks of M, all
/// threads have written their rows of r before.
template <class N>
__device__ void add_norms(const DevicePart<N>& a, const DeviceVectors<N>& v, std::int64_t first,
                          std::int64_t last, int c, double& rz, double& rr) {
  __syncthreads();
  for (std::int64_t row = first + threadIdx.x; row < last; row += threads) {
    const N r = v.r[row * v.columns + c];
    rz += dot(r, scaled(a.inverses, a.inverse_rows, v.r, v.columns, row, c));
    rr += dot(r, r);
  }
}

__device__ void set_directions(const Ending& ending, const double* sums, std::int64_t blocks,
                               int columns) {
  for (int c = 0; c < columns; ++c) {
    if (ending.states[c].status != IterationStatus::running) continue;
    const double rz = sum_of_part(sums, blocks, columns, 0, c);
    const double rr = sum_of_part(sums, blocks, columns, 1, c);
    if (threadIdx.x == 0) end_iteration(ending.states[c], {rz, rr, 0}, ending.history, columns, c);
  }
}

template <class N>
__global__ void __launch_bounds__(threads)
    step_blocks(DevicePart<N> a, DeviceVectors<N> v, const ColumnState* states, N* x, double* sums,
                Ending ending) {
  const std::int64_t first = blockIdx.x * a.block_rows;
  const std::int64_t last = min(first + a.block_rows, a.rows);
  for (int c = 0; c < v.columns; ++c) {
    if (states[c].status != IterationStatus::running) continue;
    const double alpha = states[c].alpha;
    double rz = 0;
    double rr = 0;
    for (std::int64_t row = first + threadIdx.x; row < last; row += threads) {
      const std::int64_t at = row * v.columns + c;
      x[at] = sum(x[at], times_real(v.p[at], alpha));
      const N r = difference(v.r[at], times_real(v.q[at], alpha));
      v.r[at] = r;
      if (a.inverse_rows > 1) continue;
      rz += dot(r, a.inverses ? product(a.inverses[row], r) : r);
      rr += dot(r, r);
    }
    if (a.inverse_rows > 1) add_norms(a, v, first, last, c, rz, rr);
    write_sums(rz, rr, blockIdx.x * v.columns + c, a.blocks * v.columns, sums);
  }
  if (ending.states && is_last_block(ending.arrived))
    set_directions(ending, sums, a.blocks, v.columns);
}

template <class N>
__global__ void __launch_bounds__(threads)
    residual_blocks(DevicePart<N> a, DeviceVectors<N> v, const N* q, const N* b, double* sums) {
  const std::int64_t first = blockIdx.x * a.block_rows;
  const std::int64_t last = min(first + a.block_rows, a.rows);
  const std::int64_t all = a.blocks * v.columns;
  for (int c = 0; c < v.columns; ++c) {
    double rz = 0;
    double rr = 0;
    double bb = 0;
    for (std::int64_t row = first + threadIdx.x; row < last; row += threads) {
      const std::int64_t at = row * v.columns + c;
      const N r = q ? difference(b[at], q[at]) : b[at];
      v.r[at] = r;
      bb += dot(b[at], b[at]);
      if (a.inverse_rows > 1) continue;
      rz += dot(r, a.inverses ? product(a.inverses[row], r) : r);
      rr += dot(r, r);
    }
    if (a.inverse_rows > 1) add_norms(a, v, first, last, c, rz, rr);
    const std::int64_t place = blockIdx.x * v.columns + c;
    write_sums(rz, rr, place, all, sums);
    bb = sum_of_block(bb);
    if (threadIdx.x == 0) sums[2 * all + place] = bb;
  }
}

template <class T>
DeviceType<T>* numbers(T* from) {
  return reinterpret_cast<DeviceType<T>*>(from);
}
template <class T>
const DeviceType<T>* numbers(const T* from) {
  return reinterpret_cast<const DeviceType<T>*>(from);
}

/// Without M's blocks where they belong to a smoother: sums with them aren't used.
template <class T>
DevicePart<DeviceType<T>> summed_part(const PartArrays<T>& a, const PartVectors<T>& v) {
  DevicePart<DeviceType<T>> part = device_part(a);
  if (v.z) {
    part.inverses = nullptr;
    part.inverse_rows = 0;
  }
  return part;
}

}  // namespace

template <class T>
void add_partial(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
                 const ColumnState* states, double* sums) {
  if (a.shape().blocks == 0) return;
  add_to_blocks<<<static_cast<unsigned>(a.shape().blocks), threads, 0, stream>>>(
      device_part(a), device_vectors(v), numbers(v.partial), states, sums);
  check_launch("adding what other columns contribute");
}

template <class T>
void turn(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
          const ColumnState* states) {
  if (a.shape().rows == 0) return;
  turn_rows<<<grid_for(a.shape().rows * v.columns), threads, 0, stream>>>(
      device_part(a), device_vectors(v), states);
  check_launch("a direction");
}

template <class T>
void turn_halo(cudaStream_t stream, const PartShape& shape, const PartVectors<T>& v,
               const ColumnState* states, const T* arrived, std::int64_t first,
               std::int64_t count) {
  if (count == 0) return;
  turn_arrived<<<grid_for(count * v.columns), threads, 0, stream>>>(
      numbers(v.p + (shape.own_columns + first) * v.columns), numbers(arrived), count * v.columns,
      static_cast<int>(v.columns), states);
  check_launch("a direction of the halo");
}

template <class T>
void step(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
          const ColumnState* states, T* x, double* sums) {
  if (a.shape().blocks == 0) return;
  step_blocks<<<static_cast<unsigned>(a.shape().blocks), threads, 0, stream>>>(
      summed_part(a, v), device_vectors(v), states, numbers(x), sums, Ending{});
  check_launch("a step");
}

template <class T>
void step_and_set_direction(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v,
                            ColumnState* states, T* x, double* sums, IterationRecord* history,
                            unsigned* arrived) {
  if (a.shape().blocks == 0) return;
  step_blocks<<<static_cast<unsigned>(a.shape().blocks), threads, 0, stream>>>(
      summed_part(a, v), device_vectors(v), states, numbers(x), sums,
      Ending{states, history, arrived});
  check_launch("a step and the next direction");
}

template <class T>
void residual(cudaStream_t stream, const PartArrays<T>& a, const PartVectors<T>& v, const T* q,
              const T* b, double* sums) {
  if (a.shape().blocks == 0) return;
  residual_blocks<<<static_cast<unsigned>(a.shape().blocks), threads, 0, stream>>>(
      summed_part(a, v), device_vectors(v), numbers(q), numbers(b), sums);
  check_launch("a residual");
}

template <class T>
void gather(cudaStream_t stream, const PartArrays<T>& a, const T* vector, std::int64_t columns,
            std::int64_t first, std::int64_t count, bool scaled, T* out) {
  if (count == 0) return;
  gather_rows<<<grid_for(count * columns), threads, 0, stream>>>(
      numbers(vector), a.send_rows() + first, numbers(a.inverses()),
      scaled ? a.shape().inverse_rows : 0, count, static_cast<int>(columns), numbers(out));
  check_launch("gathering rows");
}

#define QUADRIGA_INSTANTIATE(T)                                                                   \
  template void add_partial(cudaStream_t, const PartArrays<T>&, const PartVectors<T>&,            \
                            const ColumnState*, double*);                                         \
  template void turn(cudaStream_t, const PartArrays<T>&, const PartVectors<T>&,                   \
                     const ColumnState*);                                                         \
  template void turn_halo(cudaStream_t, const PartShape&, const PartVectors<T>&,                  \
                          const ColumnState*, const T*, std::int64_t, std::int64_t);              \
  template void step(cudaStream_t, const PartArrays<T>&, const PartVectors<T>&,                   \
                     const ColumnState*, T*, double*);                                            \
  template void step_and_set_direction(cudaStream_t, const PartArrays<T>&, const PartVectors<T>&, \
                                       ColumnState*, T*, double*, IterationRecord*, unsigned*);   \
  template void residual(cudaStream_t, const PartArrays<T>&, const PartVectors<T>&, const T*,     \
                         const T*, double*);                                                      \
  template void gather(cudaStream_t, const PartArrays<T>&, const T*, std::int64_t, std::int64_t,  \
                       std::int64_t, bool, T*);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::sparse::cuda
