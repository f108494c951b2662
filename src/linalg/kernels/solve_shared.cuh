// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/solve_shared.cuh: a triangular system in memory, and what a thread block keeps
// of it in shared memory.
//
// With unknowns in the order in which they are found, s(p,q) is what unknown p contributes to
// equation q.
#pragma once

#include <algorithm>

#include "linalg/kernels/number_cuda.cuh"

namespace quadriga::kernels::cuda {

constexpr int lanes = 32;
constexpr int width = 32;  // Unknowns of a block.
constexpr int warps = 8;
constexpr int threads = warps * lanes;
// Rows of 4 modulo 16 numbers: the 16 that half a warp reads for a product lie in different banks.
constexpr int skew = 4;
constexpr int stride = width + skew;

/// Addresses are sums of products of two numbers each.
struct Steps {
  std::ptrdiff_t origin = 0;
  std::ptrdiff_t first = 0;
  std::ptrdiff_t second = 0;

  __device__ std::ptrdiff_t at(int i, int j) const { return origin + i * first + j * second; }
};

template <class N>
struct System {
  KernelTile<const N> a;
  KernelTile<N> b;
  Steps coefficients;  ///< Of unknown p in equation q; neither beyond the order.
  Steps unknowns;      ///< At a position for a right-hand side.
  int sides = 0;
  bool along_unknowns = false;  ///< Neighbours in memory are coefficients of neighbouring unknowns,
  bool along_positions = false;  ///< and unknowns of one right-hand side.
  bool conjugated = false;
  bool unit = false;
};

/// What a thread block keeps in shared memory: `values` has the right-hand sides, then the
/// unknowns, those of a position together; `inverses` the inverted triangle of each block;
/// `pieces` two pieces of the triangle, `found` one block's unknowns.
template <class N>
struct Shared {
  N* values;
  N* inverses;
  N* pieces;
  N* found;
  int value_stride;
  int rows_a_piece;

  __device__ Shared(void* memory, int most, int sides)
      : values(static_cast<N*>(memory)), value_stride(sides + skew), rows_a_piece(most / 2) {
    inverses = values + most * value_stride;
    pieces = inverses + most * stride;
    found = pieces + 2 * rows_a_piece * stride;
  }
  __device__ N* value(int position) const { return values + position * value_stride; }
  __device__ N* inverse(int block) const { return inverses + block * width * stride; }
  __device__ N* piece(int index) const { return pieces + index % 2 * rows_a_piece * stride; }
  static constexpr std::size_t bytes(int most, int sides) {
    return sizeof(N) *
           static_cast<std::size_t>((most + width) * (sides + skew) + 2 * most * stride);
  }
};

__device__ inline int lane_id() { return static_cast<int>(threadIdx.x) % lanes; }
__device__ inline int warp_id() { return static_cast<int>(threadIdx.x) / lanes; }

/// Asks for an element's copy into shared memory, or for a zero there, and doesn't wait.
template <class Real>
__device__ void fetch(Real* to, const Real* from, bool present) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from), "n"(sizeof(Real)), "r"(present ? static_cast<int>(sizeof(Real)) : 0)
               : "memory");
}
template <class Real>
__device__ void fetch(Pair<Real>* to, const Pair<Real>* from, bool present) {
  // A pair in memory may be aligned like its parts only.
  fetch(&to->real, &from->real, present);
  fetch(&to->imag, &from->imag, present);
}
__device__ inline void close_fetches() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Until all closed groups but the last `open` have arrived.
template <int open>
__device__ void await_fetches() {
  asm volatile("cp.async.wait_group %0;" ::"n"(open) : "memory");
}

template <class Real>
__device__ void set_to_one(Real& value) {
  value = 1;
}
template <class Real>
__device__ void set_to_one(Pair<Real>& value) {
  value = {1, 0};
}

/// Asks for the coefficients of 32 unknowns from p on in 32 equations from q on. On the diagonal
/// (p = q) a triangle; beyond its order the system goes on as the identity's.
template <class N>
__device__ void fetch_square(const System<N>& system, int p, int q, N* to) {
  const bool along = system.along_unknowns;
  const int equations = system.a.rows - q;
  const bool on_diagonal = p == q;
  const Steps& steps = system.coefficients;
  const N* from = system.a.data + steps.at(p + (along ? lane_id() : warp_id()),
                                           q + (along ? warp_id() : lane_id()));
  const std::ptrdiff_t step = warps * (along ? steps.second : steps.first);
#pragma unroll
  for (int k = 0; k < width; k += warps, from += step) {
    const int i = along ? lane_id() : warp_id() + k;
    const int j = along ? warp_id() + k : lane_id();
    N* const at = to + i * stride + j;
    const bool present = j < equations && (!on_diagonal || i < j || (i == j && !system.unit));
    if (on_diagonal && i == j && !present)
      set_to_one(*at);
    else
      fetch(at, present ? from : system.a.data, present);
  }
}

/// Calls element(p, side) for all positions of `blocks` blocks and `sides` right-hand sides, along
/// their neighbours in memory.
template <int sides, class Element>
__device__ void each_value(bool along_positions, int blocks, Element element) {
  const int thread = static_cast<int>(threadIdx.x);
  if (along_positions) {
    for (int p = lane_id(); p < blocks * width; p += lanes)
#pragma unroll
      for (int k = 0; k < sides; k += warps) element(p, warp_id() + k);
  } else {
    constexpr int at_once = threads / sides;
#pragma unroll 4
    for (int p = thread / sides; p < blocks * width; p += at_once) element(p, thread % sides);
  }
}

/// Asks for right-hand sides from `first` on, for all positions of `blocks` blocks.
template <int sides, class N>
__device__ void fetch_values(const System<N>& system, int blocks, int first,
                             const Shared<N>& shared) {
  each_value<sides>(system.along_positions, blocks, [&](int p, int side) {
    const bool present = p < system.a.rows && first + side < system.sides;
    const N* const from = system.b.data + system.unknowns.at(p, first + side);
    fetch(shared.value(p) + side, present ? from : system.b.data, present);
  });
}

template <int sides, class N>
__device__ void store_values(const System<N>& system, int blocks, int first,
                             const Shared<N>& shared) {
  each_value<sides>(system.along_positions, blocks, [&](int p, int side) {
    if (p < system.a.rows && first + side < system.sides)
      system.b.data[system.unknowns.at(p, first + side)] = shared.value(p)[side];
  });
}

/// Of a conjugated triangle the conjugated system is solved.
template <int sides, class N>
__device__ void conjugate_values(const System<N>& system, int blocks, const Shared<N>& shared) {
  if (!system.conjugated) return;
  each_value<sides>(false, blocks, [&](int p, int side) {
    shared.value(p)[side] = conjugate_of(shared.value(p)[side]);
  });
}

}  // namespace quadriga::kernels::cuda
