// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/solve_cuda.cu: substitution with the triangle in shared memory.
//
// A warp solves a few right-hand sides at once. Its lanes hold their unknowns, each lane every 32nd
// one; an unknown that is found is told to all lanes, which subtract its share from theirs. With
// unknowns in the order in which they are found, s(p,q) is what unknown p contributes to equation
// q.
#include "linalg/kernels/solve_cuda.h"

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
  __device__ N coefficient(int p, int q) const {
    // Of op(A): its row is the equation's (left) or the unknown's (right).
    int row = index(left ? q : p);
    int col = index(left ? p : q);
    if (turned) {
      const int other = row;
      row = col;
      col = other;
    }
    const N value = a.data[row + static_cast<std::ptrdiff_t>(col) * a.ld];
    return conjugated ? conjugate_of(value) : value;
  }
  __device__ N& unknown(int position, int side) const {
    const std::ptrdiff_t at = index(position);
    return left ? b.data[at + static_cast<std::ptrdiff_t>(side) * b.ld] : b.data[side + at * b.ld];
  }
};

/// A row of coefficients for each unknown, and after them the inverses of the diagonal.
template <class N, int most>
__device__ void load(const System<N>& system, N* rows) {
  const int order = system.a.rows;
  N* const diagonal = rows + most * most;
  for (int at = static_cast<int>(threadIdx.x); at < most * most;
       at += static_cast<int>(blockDim.x)) {
    const int p = at / most;
    const int q = at % most;
    if (p < q && q < order) rows[at] = system.coefficient(p, q);
    if (p != q || p >= order) continue;
    if (system.unit)
      set_to_one(diagonal[p]);
    else
      diagonal[p] = inverse(system.coefficient(p, p));
  }
  __syncthreads();
}

/// Unknowns of a warp's right-hand sides: a lane has every 32nd.
template <class N, int parts>
using Unknowns = N[sides_a_warp][parts];

template <class N, int most>
__device__ void find(int order, const N* rows, int lane, Unknowns<N, most / lanes>& values) {
  const N* const diagonal = rows + most * most;
#pragma unroll
  for (int found = 0; found < most / lanes; ++found) {
    const int end = min(lanes, order - found * lanes);
    for (int l = 0; l < end; ++l) {
      const int p = found * lanes + l;
      N x[sides_a_warp];
#pragma unroll
      for (int s = 0; s < sides_a_warp; ++s) {
        x[s] = told(product(values[s][found], diagonal[p]), l);
        if (lane == l) values[s][found] = x[s];
      }
#pragma unroll
      for (int part = found; part < most / lanes; ++part) {
        if (part == found && lane <= l) continue;
        const N share = rows[p * most + part * lanes + lane];
#pragma unroll
        for (int s = 0; s < sides_a_warp; ++s)
          values[s][part] = less_product(values[s][part], x[s], share);
      }
    }
  }
}

template <class N, int most>
__global__ void substitute(System<N> system) {
  extern __shared__ __align__(16) unsigned char memory[];
  N* const rows = reinterpret_cast<N*>(memory);
  load<N, most>(system, rows);
  constexpr int parts = most / lanes;
  const int order = system.a.rows;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int warps = static_cast<int>(blockDim.x) / lanes;
  const int warp = static_cast<int>(blockIdx.x) * warps + static_cast<int>(threadIdx.x) / lanes;
  const int first = warp * sides_a_warp;
  const int count = min(sides_a_warp, system.sides() - first);
  Unknowns<N, parts> values = {};
#pragma unroll
  for (int s = 0; s < sides_a_warp; ++s)
#pragma unroll
    for (int part = 0; part < parts; ++part)
      if (s < count && part * lanes + lane < order)
        values[s][part] = system.unknown(part * lanes + lane, first + s);
  find<N, most>(order, rows, lane, values);
#pragma unroll
  for (int s = 0; s < sides_a_warp; ++s)
#pragma unroll
    for (int part = 0; part < parts; ++part)
      if (s < count && part * lanes + lane < order)
        system.unknown(part * lanes + lane, first + s) = values[s][part];
}

template <class T>
constexpr int shared_bytes =
    (most_substituted<T> + 1) * most_substituted<T>* static_cast<int>(sizeof(T));

template <class T>
void allow_shared_memory() {
  check(cudaFuncSetAttribute(substitute<Number<T>, most_substituted<T>>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes<T>),
        "asking for shared memory");
}

/// Enough warps to fill a device of this many multiprocessors; few share the triangle otherwise.
int warps_for(int sides) {
  constexpr int processors = 132;
  const int wanted = sides / (processors * sides_a_warp);
  return wanted <= 4 ? 4 : wanted <= 8 ? 8 : 16;
}

}  // namespace

template <class T>
bool can_substitute() {
  int device = 0;
  int bytes = 0;
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "asking for shared memory");
  return bytes >= shared_bytes<T>;
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
  allow_shared_memory<T>();
  const int warps = warps_for(system.sides());
  const int sides_a_block = warps * sides_a_warp;
  substitute<Number<T>, most_substituted<T>>
      <<<blocks_for(system.sides(), sides_a_block), warps * lanes, shared_bytes<T>, stream>>>(
          system);
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
