// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/solve_cuda.cu: triangular systems by blocks of 32 unknowns, in shared memory.
//
// A block of 32 unknowns is what is left of its equations times the inverse of their triangle, and
// refined once: the inverse alone would lose digits where the triangle is badly conditioned. The
// unknowns of a right-hand side are found by one thread block, which reads the triangle piece by
// piece; the next piece arrives while one is used.
#include "linalg/kernels/solve_cuda.h"

#include "device/cuda/cuda_check.h"
#include "linalg/kernels/solve_shared.cuh"

namespace quadriga::kernels::cuda {
namespace {

using quadriga::cuda::check;

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
__device__ Real negative(Real value) {
  return -value;
}
template <class Real>
__device__ Pair<Real> negative(Pair<Real> value) {
  return {-value.real, -value.imag};
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
__device__ Real told(Real value, int lane) {
  return __shfl_sync(0xffffffff, value, lane);
}
template <class Real>
__device__ Pair<Real> told(Pair<Real> value, int lane) {
  return {told(value.real, lane), told(value.imag, lane)};
}

/// A warp replaces a triangle by its inverse; a lane has a row of it.
template <class N>
__device__ void invert(N* triangle) {
  const int lane = lane_id();
  const N own = inverse(triangle[lane * stride + lane]);
  N row[width];
#pragma unroll
  for (int q = 0; q < width; ++q) {
    row[q] = N{};
    if (q == lane) set_to_one(row[q]);
  }
#pragma unroll
  for (int p = 0; p < width; ++p) {
    row[p] = product(row[p], told(own, p));
#pragma unroll
    for (int q = p + 1; q < width; ++q)
      row[q] = less_product(row[q], row[p], triangle[p * stride + q]);
  }
  __syncwarp();
#pragma unroll
  for (int q = 0; q < width; ++q) triangle[lane * stride + q] = row[q];
}

/// Of a block's unknowns, 8 of 16 right-hand sides are a warp's. A lane has two neighbouring ones
/// of two right-hand sides, as tensor cores want it.
constexpr int edge = 8;
constexpr int sides_a_warp = 16;
template <class N>
using Sums = N[4];

/// Where a lane's sums are in a block.
struct Place {
  int lane;
  int side;
  int unknown;
  bool is_used;  ///< Few right-hand sides leave warps without any.

  __device__ explicit Place(int sides) {
    const int groups = sides / sides_a_warp;
    lane = lane_id();
    side = warp_id() % groups * sides_a_warp;
    unknown = warp_id() / groups * edge;
    is_used = unknown < width;
  }
  /// Calls element(unknown, side, which) for each of the lane's sums.
  template <class Element>
  __device__ void each(Element element) const {
    if (!is_used) return;
#pragma unroll
    for (int e = 0; e < 4; ++e)
      element(unknown + lane % 4 * 2 + e % 2, side + lane / 4 + e / 2 * edge, e);
  }
};

/// Adds left(p, side)*right(p, q) for `count` unknowns p, a multiple of 16.
template <class N>
__device__ void add_products(const Place& place, const N* left, int left_stride, const N* right,
                             int count, Sums<N>& sums) {
  if (!place.is_used) return;
  left += place.side + place.lane / 4;
  right += place.unknown + place.lane % 4 * 2;
#pragma unroll 4
  for (int p = 0; p < count; ++p) {
    const N factors[] = {negative(left[p * left_stride]), negative(left[p * left_stride + edge])};
    const N coefficients[] = {right[p * stride], right[p * stride + 1]};
#pragma unroll
    for (int e = 0; e < 4; ++e)
      sums[e] = less_product(sums[e], factors[e / 2], coefficients[e % 2]);
  }
}

/// 16 x 16 times 16 x 8 on tensor cores: each lane has 8 and 4 of the factors' elements.
__device__ inline void multiply_add(double (&sums)[4], const double (&left)[8],
                                    const double (&right)[4]) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, "
      "{%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
      : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
      : "d"(left[0]), "d"(left[1]), "d"(left[2]), "d"(left[3]), "d"(left[4]), "d"(left[5]),
        "d"(left[6]), "d"(left[7]), "d"(right[0]), "d"(right[1]), "d"(right[2]), "d"(right[3]));
#else
#pragma unroll
  for (int i = 0; i < 8; ++i)
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(sums[i % 2 * 2]), "+d"(sums[i % 2 * 2 + 1])
        : "d"(left[i]), "d"(right[i / 2]));
#endif
}

__device__ inline void add_products(const Place& place, const double* left, int left_stride,
                                    const double* right, int count, Sums<double>& sums) {
  if (!place.is_used) return;
  const int within = place.lane % 4;
  left += within * left_stride + place.side + place.lane / 4;
  right += within * stride + place.unknown + place.lane / 4;
#pragma unroll 2
  for (int p = 0; p < count; p += 16) {
    double factors[8];
    double coefficients[4];
#pragma unroll
    for (int i = 0; i < 8; ++i) factors[i] = left[(p + i / 2 * 4) * left_stride + i % 2 * edge];
#pragma unroll
    for (int i = 0; i < 4; ++i) coefficients[i] = right[(p + i * 4) * stride];
    multiply_add(sums, factors, coefficients);
  }
}

/// Finds a block's unknowns, all threads together. `sums` holds what the unknowns before contribute
/// to its equations, `triangle` the block's own s(p,q).
template <class N>
__device__ void find(const Place& place, const Shared<N>& shared, int block, const N* triangle,
                     Sums<N>& sums) {
  N* const values = shared.value(block * width);
  const N* const inverse = shared.inverse(block);
  const int row = shared.value_stride;
  Sums<N> rest;
  place.each([&](int q, int side, int e) {
    rest[e] = sum(values[q * row + side], negative(sums[e]));
    values[q * row + side] = rest[e];
  });
  __syncthreads();
  Sums<N> found = {};
  add_products(place, values, row, inverse, width, found);
  place.each([&](int q, int side, int e) { shared.found[q * row + side] = found[e]; });
  __syncthreads();
  Sums<N> share = {};
  add_products(place, shared.found, row, triangle, width, share);
  place.each(
      [&](int q, int side, int e) { values[q * row + side] = sum(rest[e], negative(share[e])); });
  __syncthreads();
  add_products(place, values, row, inverse, width, found);
  __syncthreads();
  place.each([&](int q, int side, int e) { values[q * row + side] = found[e]; });
}

/// The pieces of the triangle in the order in which they are used: for each block the unknowns
/// before it, and its own last.
struct TrianglePiece {
  int block = 0;
  int begin = 0;

  __device__ int before(int most) const { return min(most, block * width - begin); }
  __device__ bool is_last(int most) const { return begin + most >= (block + 1) * width; }
  __device__ TrianglePiece next(int most) const {
    return is_last(most) ? TrianglePiece{block + 1, 0} : TrianglePiece{block, begin + most};
  }
};

template <class N>
__device__ void fetch_piece(const System<N>& system, const TrianglePiece& piece, int most, N* to) {
  const int end = piece.begin + piece.before(most) + (piece.is_last(most) ? width : 0);
  for (int p = piece.begin; p < end; p += width, to += width * stride)
    fetch_square(system, p, piece.block * width, to);
}

template <class N, int sides>
__global__ void __launch_bounds__(threads) substitute(System<N> system, int most) {
  extern __shared__ __align__(16) unsigned char memory[];
  const Shared<N> shared(memory, most, sides);
  const int blocks = (system.a.rows + width - 1) / width;
  const int first = static_cast<int>(blockIdx.x) * sides;
  const Place place(sides);
  for (int block = 0; block < blocks; ++block)
    fetch_square(system, block * width, block * width, shared.inverse(block));
  close_fetches();
  TrianglePiece piece;
  fetch_piece(system, piece, shared.rows_a_piece, shared.piece(0));
  fetch_values<sides>(system, blocks, first, shared);
  close_fetches();
  await_fetches<1>();
  __syncthreads();
  for (int block = warp_id(); block < blocks; block += warps) invert(shared.inverse(block));
  await_fetches<0>();
  __syncthreads();
  conjugate_values<sides>(system, blocks, shared);
  Sums<N> sums = {};
  for (int index = 0; piece.block < blocks; ++index) {
    await_fetches<0>();
    __syncthreads();
    const TrianglePiece next = piece.next(shared.rows_a_piece);
    if (next.block < blocks) {
      fetch_piece(system, next, shared.rows_a_piece, shared.piece(index + 1));
      close_fetches();
    }
    const N* const coefficients = shared.piece(index);
    const int before = piece.before(shared.rows_a_piece);
    add_products(place, shared.value(piece.begin), shared.value_stride, coefficients, before, sums);
    if (piece.is_last(shared.rows_a_piece)) {
      find(place, shared, piece.block, coefficients + before * stride, sums);
      for (N& one : sums) one = N{};
    }
    piece = next;
  }
  __syncthreads();
  conjugate_values<sides>(system, blocks, shared);
  __syncthreads();
  store_values<sides>(system, blocks, first, shared);
}

/// What a thread block may have of the current device, and how many of them run at once.
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

/// The last unknown is found first.
Steps reversed(Steps steps, int order) {
  steps.origin += (order - 1) * steps.first;
  steps.first = -steps.first;
  return steps;
}
Steps exchanged(Steps steps) { return {steps.origin, steps.second, steps.first}; }

constexpr int few_sides = 16;  // Right-hand sides of a thread block.
constexpr int many_sides = 32;

template <class T>
int most_for(const Limits& limits) {
  for (const int most : {256, 128, 64})
    if (Shared<Number<T>>::bytes(most, many_sides) <= static_cast<std::size_t>(limits.bytes))
      return most;
  return 0;
}

template <class N, int sides>
void launch(cudaStream_t stream, const System<N>& system, int most, const Limits& limits) {
  const auto kernel = substitute<N, sides>;
  // Always the same, since other threads may be between this and their launch.
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limits.bytes),
        "asking for shared memory");
  kernel<<<blocks_for(system.sides, sides), threads, Shared<N>::bytes(most, sides), stream>>>(
      system, most);
  check(cudaGetLastError(), "a triangular solve");
}

}  // namespace

template <class T>
int most_substituted() {
  return most_for<T>(limits_of_device());
}

template <class T>
void solve_by_substitution(cudaStream_t stream, Side side, Uplo uplo, Op op, Diag diag, Input<T> a,
                           KernelTile<T> b) {
  if (b.empty()) return;
  const bool left = side == Side::left;
  const bool turned = op != Op::none;
  System<Number<T>> system;
  system.a = numbers(KernelTile<const T>(a));
  system.b = numbers(b);
  system.sides = left ? b.cols : b.rows;
  system.conjugated = op == Op::conjugate;
  system.unit = diag == Diag::unit;
  // Of op(A), the row is the equation's from the left and the unknown's from the right.
  system.along_unknowns = left == turned;
  system.along_positions = left;
  system.coefficients = {0, system.along_unknowns ? 1 : a.ld, system.along_unknowns ? a.ld : 1};
  system.unknowns = {0, left ? 1 : b.ld, left ? b.ld : 1};
  // From the left a lower triangle gives its first unknown first, from the right an upper one does.
  const bool is_lower = (uplo == Uplo::lower) != turned;
  if (is_lower != left) {
    system.coefficients = reversed(exchanged(reversed(system.coefficients, a.rows)), a.rows);
    system.coefficients = exchanged(system.coefficients);
    system.unknowns = reversed(system.unknowns, a.rows);
  }
  const Limits limits = limits_of_device();
  const int most = most_for<T>(limits);
  require(a.rows <= most, "a triangle by substitution is too large");
  // As many a thread block as fill the device once: those of few share the triangle with few.
  if (system.sides <= few_sides * limits.processors)
    launch<Number<T>, few_sides>(stream, system, most, limits);
  else
    launch<Number<T>, many_sides>(stream, system, most, limits);
}

#define QUADRIGA_INSTANTIATE(T)                                                                   \
  template int most_substituted<T>();                                                             \
  template void solve_by_substitution<T>(cudaStream_t, Side, Uplo, Op, Diag, KernelTile<const T>, \
                                         KernelTile<T>);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::kernels::cuda
