// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/solve_cuda.cu: substitution with the triangle in shared memory.
//
// A warp solves a few right-hand sides at once. Its lanes hold their unknowns, each lane every 32nd
// one; an unknown that is found is told to all lanes, which subtract its share from theirs. With
// unknowns in the order in which they are found, s(p,q) is what unknown p contributes to equation
// q.
#include "linalg/kernels/solve_cuda.h"

#include <cuda_pipeline.h>

#include <algorithm>

#include "device/cuda/check.h"
#include "linalg/kernels/number_cuda.cuh"

namespace quadriga::kernels::cuda {
namespace {

using quadriga::cuda::check;

constexpr int lanes = 32;
constexpr int sides_a_warp = 4;  // Right-hand sides.
constexpr unsigned all_lanes = 0xffffffff;

template <class Real>
__device__ Real told(Real value, int lane) {
  return __shfl_sync(all_lanes, value, lane);
}
template <class Real>
__device__ Pair<Real> told(Pair<Real> value, int lane) {
  return {told(value.real, lane), told(value.imag, lane)};
}

/// c - a*b
template <class Real>
__device__ Real less_product(Real c, Real a, Real b) {
  return fma(-a, b, c);
}
template <class Real>
__device__ Pair<Real> less_product(Pair<Real> c, Pair<Real> a, Pair<Real> b) {
  return {fma(a.imag, b.imag, fma(-a.real, b.real, c.real)),
          fma(-a.imag, b.real, fma(-a.real, b.imag, c.imag))};
}

template <class Real>
__device__ Real inverse(Real value) {
  return 1 / value;
}
/// Scaled, so that squares don't overflow.
template <class Real>
__device__ Pair<Real> inverse(Pair<Real> value) {
  const Real scale =
      1 / (fabs(value.real) > fabs(value.imag) ? fabs(value.real) : fabs(value.imag));
  const Real x = value.real * scale;
  const Real y = value.imag * scale;
  const Real factor = scale / (x * x + y * y);
  return {x * factor, -y * factor};
}

template <class Real>
__device__ void set_to_one(Real& value) {
  value = 1;
}
template <class Real>
__device__ void set_to_one(Pair<Real>& value) {
  value = {1, 0};
}

template <class N>
struct System {
  Tile<const N> a;
  Tile<N> b;
  bool left = false;
  bool backward = false;  // The last unknown is found first.
  bool turned = false;    // op(A) is A^T or A^H,
  bool conjugated = false;
  bool unit = false;

  __host__ __device__ int sides() const { return left ? b.cols : b.rows; }
  /// Of the unknown that is found at a position.
  __device__ int index(int position) const { return backward ? a.rows - 1 - position : position; }
  __device__ const N& coefficient(int p, int q) const {
    // Of op(A): its row is the equation's (left) or the unknown's (right).
    int row = index(left ? q : p);
    int col = index(left ? p : q);
    if (turned) {
      const int other = row;
      row = col;
      col = other;
    }
    return a.data[row + static_cast<std::ptrdiff_t>(col) * a.ld];
  }
  __device__ N& unknown(int position, int side) const {
    const std::ptrdiff_t at = index(position);
    return left ? b.data[at + static_cast<std::ptrdiff_t>(side) * b.ld] : b.data[side + at * b.ld];
  }
};

/// Asks for an element's copy into shared memory and doesn't wait: all copies of a thread fly at
/// once. Through registers each would wait for the one before, as both memories might be the same.
template <class N>
__device__ void fetch(N* to, const N* from) {
  __pipeline_memcpy_async(to, from, sizeof(N));
}
template <class Real>
__device__ void fetch(Pair<Real>* to, const Pair<Real>* from) {
  // A pair in memory may be aligned like its parts only.
  __pipeline_memcpy_async(&to->real, &from->real, sizeof(Real));
  __pipeline_memcpy_async(&to->imag, &from->imag, sizeof(Real));
}

/// What a block keeps in shared memory: a row of coefficients for each unknown, the inverses of the
/// diagonal, and right-hand sides, the block's of an unknown together. Rows are one longer than
/// they need be, so that neither rows nor columns meet in one bank.
template <class N, int most>
struct Shared {
  static constexpr int stride = most + 1;
  N* rows;
  N* diagonal;
  N* values;
  int sides;  // Of a full block.

  __device__ Shared(void* memory, int sides_a_block)
      : rows(static_cast<N*>(memory)),
        diagonal(rows + most * stride),
        values(diagonal + most),
        sides(sides_a_block) {}
  __device__ N& value(int position, int side) const {
    return values[position * (sides + 1) + side];
  }
  static constexpr std::size_t bytes(int sides_a_block) {
    return sizeof(N) * static_cast<std::size_t>(most * stride + most + most * (sides_a_block + 1));
  }
};

/// Calls element(i, j) for the pairs of rows and cols that this thread has: a warp has a row or a
/// column, along rows if `along_rows`.
template <class Element>
__device__ void share_out(int rows, int cols, bool along_rows, Element element) {
  const int outer = along_rows ? cols : rows;
  const int inner = along_rows ? rows : cols;
  const int warps = static_cast<int>(blockDim.x) / lanes;
  for (int i = static_cast<int>(threadIdx.x) / lanes; i < outer; i += warps)
#pragma unroll 4
    for (int j = static_cast<int>(threadIdx.x) % lanes; j < inner; j += lanes)
      element(along_rows ? j : i, along_rows ? i : j);
}

template <class N, int most>
__device__ void load(const System<N>& system, const Shared<N, most>& shared, int first, int sides) {
  const int order = system.a.rows;
  // op(A)'s row is the equation's from the left and the unknown's from the right.
  const bool along_unknowns = system.left == system.turned;
  share_out(order, order, along_unknowns, [&](int p, int q) {
    if (p <= q) fetch(&shared.rows[p * shared.stride + q], &system.coefficient(p, q));
  });
  share_out(order, sides, system.left, [&](int p, int side) {
    fetch(&shared.value(p, side), &system.unknown(p, first + side));
  });
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  for (int p = static_cast<int>(threadIdx.x); p < order; p += static_cast<int>(blockDim.x)) {
    if (system.unit)
      set_to_one(shared.diagonal[p]);
    else
      shared.diagonal[p] = inverse(shared.rows[p * shared.stride + p]);
  }
  __syncthreads();
}

/// Unknowns of a warp's right-hand sides: a lane has every 32nd.
template <class N, int parts>
using Unknowns = N[sides_a_warp][parts];

template <class N, int most>
__device__ void find(int order, const Shared<N, most>& shared, int lane,
                     Unknowns<N, most / lanes>& values) {
#pragma unroll
  for (int found = 0; found < most / lanes; ++found) {
    const int end = min(lanes, order - found * lanes);
#pragma unroll 4
    for (int l = 0; l < end; ++l) {
      const int p = found * lanes + l;
      const N factor = shared.diagonal[p];
      N x[sides_a_warp];
#pragma unroll
      for (int s = 0; s < sides_a_warp; ++s) {
        x[s] = told(product(values[s][found], factor), l);
        if (lane == l) values[s][found] = x[s];
      }
#pragma unroll
      for (int part = found; part < most / lanes; ++part) {
        const N share = shared.rows[p * shared.stride + part * lanes + lane];
#pragma unroll
        for (int s = 0; s < sides_a_warp; ++s)
          if (part > found || lane > l)
            values[s][part] = less_product(values[s][part], x[s], share);
      }
    }
  }
}

/// Of a conjugated triangle the conjugated system is solved.
template <class N>
__device__ N turned_if(bool conjugated, N value) {
  return conjugated ? conjugate_of(value) : value;
}

template <class N, int most>
__global__ void substitute(System<N> system, int sides_a_block) {
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int parts = most / lanes;
  const Shared<N, most> shared(memory, sides_a_block);
  const int order = system.a.rows;
  const int first = static_cast<int>(blockIdx.x) * sides_a_block;
  const int sides = min(sides_a_block, system.sides() - first);
  load<N, most>(system, shared, first, sides);
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int begin = static_cast<int>(threadIdx.x) / lanes * sides_a_warp;
  Unknowns<N, parts> values = {};
#pragma unroll
  for (int s = 0; s < sides_a_warp; ++s)
#pragma unroll
    for (int part = 0; part < parts; ++part)
      if (begin + s < sides && part * lanes + lane < order)
        values[s][part] =
            turned_if(system.conjugated, shared.value(part * lanes + lane, begin + s));
  if (begin < sides) find<N, most>(order, shared, lane, values);
#pragma unroll
  for (int s = 0; s < sides_a_warp; ++s)
#pragma unroll
    for (int part = 0; part < parts; ++part)
      if (begin + s < sides && part * lanes + lane < order)
        shared.value(part * lanes + lane, begin + s) =
            turned_if(system.conjugated, values[s][part]);
  __syncthreads();
  share_out(order, sides, system.left,
            [&](int p, int side) { system.unknown(p, first + side) = shared.value(p, side); });
}

constexpr int least_warps = 4;  // A block's right-hand sides are those of as many warps,
constexpr int most_warps = 16;
constexpr int loading_warps = 8;  // and its triangle is loaded by no fewer.

template <class T>
constexpr std::size_t shared_bytes(int warps) {
  return Shared<Number<T>, most_substituted<T>>::bytes(warps * sides_a_warp);
}

/// What a block may have of the current device, and how many of them run at once.
struct Limits {
  int processors = 0;
  int bytes = 0;
};
Limits limits_of_device() {
  int device = 0;
  Limits limits;
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaDeviceGetAttribute(&limits.bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "asking for shared memory");
  check(cudaDeviceGetAttribute(&limits.processors, cudaDevAttrMultiProcessorCount, device),
        "asking for processors");
  return limits;
}

/// As many right-hand sides a block as fill the device once; few share the triangle otherwise.
template <class T>
int warps_for(int sides, const Limits& limits) {
  int warps = least_warps;
  while (warps < most_warps && limits.processors * warps * sides_a_warp < sides &&
         shared_bytes<T>(2 * warps) <= static_cast<std::size_t>(limits.bytes))
    warps *= 2;
  return warps;
}

}  // namespace

template <class T>
bool can_substitute() {
  return static_cast<std::size_t>(limits_of_device().bytes) >= shared_bytes<T>(least_warps);
}

template <class T>
void solve_by_substitution(cudaStream_t stream, Side side, Uplo uplo, Op op, Diag diag, Input<T> a,
                           Tile<T> b) {
  System<Number<T>> system;
  system.a = numbers(Tile<const T>(a));
  system.b = numbers(b);
  system.left = side == Side::left;
  system.turned = op != Op::none;
  system.conjugated = op == Op::adjoint;
  system.unit = diag == Diag::unit;
  // From the left a lower triangle gives its first unknown first, from the right an upper one does.
  const bool is_lower = (uplo == Uplo::lower) != system.turned;
  system.backward = is_lower != system.left;
  if (b.empty()) return;
  const Limits limits = limits_of_device();
  const int warps = warps_for<T>(system.sides(), limits);
  const int sides_a_block = warps * sides_a_warp;
  const std::size_t bytes = shared_bytes<T>(warps);
  const auto kernel = substitute<Number<T>, most_substituted<T>>;
  // Always the same, since other threads may be between this and their launch.
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limits.bytes),
        "asking for shared memory");
  const int threads = std::max(warps, loading_warps) * lanes;
  kernel<<<blocks_for(system.sides(), sides_a_block), threads, bytes, stream>>>(system,
                                                                                sides_a_block);
  check(cudaGetLastError(), "a triangular solve");
}

#define QUADRIGA_INSTANTIATE(T)                                                             \
  template bool can_substitute<T>();                                                        \
  template void solve_by_substitution<T>(cudaStream_t, Side, Uplo, Op, Diag, Tile<const T>, \
                                         Tile<T>);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::kernels::cuda
