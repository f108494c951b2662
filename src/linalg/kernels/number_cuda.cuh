// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/number_cuda.cuh: real and complex elements in device code, and what the host
// does with them, operation by operation.
#pragma once

#include <complex>

#include "linalg/kernels/region.h"

namespace quadriga::kernels::cuda {

/// std::complex<Real>, bit by bit.
template <class Real>
struct alignas(2 * sizeof(Real)) Pair {
  Real real;
  Real imag;
};

template <class T>
struct NumberOf {
  using type = T;
};
template <class Real>
struct NumberOf<std::complex<Real>> {
  using type = Pair<Real>;
};
/// What device code takes for T.
template <class T>
using Number = typename NumberOf<T>::type;

template <class T>
Number<T> number(const T& value) {
  if constexpr (is_complex<T>)
    return {value.real(), value.imag()};
  else
    return value;
}

template <class T>
KernelTile<Number<T>> numbers(KernelTile<T> tile) {
  return {reinterpret_cast<Number<T>*>(tile.data), tile.rows, tile.cols, tile.ld};
}
template <class T>
KernelTile<const Number<T>> numbers(KernelTile<const T> tile) {
  return {reinterpret_cast<const Number<T>*>(tile.data), tile.rows, tile.cols, tile.ld};
}

template <class Real>
__device__ Real conjugate_of(Real value) {
  return value;
}
template <class Real>
__device__ Pair<Real> conjugate_of(Pair<Real> value) {
  return {value.real, -value.imag};
}

template <class Real>
__device__ Real product(Real x, Real y) {
  return x * y;
}
template <class Real>
__device__ Pair<Real> product(Pair<Real> x, Pair<Real> y) {
  return {x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real};
}

template <class Real>
__device__ Real sum(Real x, Real y) {
  return x + y;
}
template <class Real>
__device__ Pair<Real> sum(Pair<Real> x, Pair<Real> y) {
  return {x.real + y.real, x.imag + y.imag};
}

template <class Real>
__device__ Real real_part(Real value) {
  return value;
}
template <class Real>
__device__ Real real_part(Pair<Real> value) {
  return value.real;
}
template <class Real>
__device__ Real imaginary_part(Real) {
  return 0;
}
template <class Real>
__device__ Real imaginary_part(Pair<Real> value) {
  return value.imag;
}

/// Threads of a block along a column, and most blocks along the columns of a tile.
constexpr int threads_a_block = 256;
constexpr unsigned most_blocks = 65535;

inline unsigned blocks_for(int elements, int threads) {
  return static_cast<unsigned>((elements + threads - 1) / threads);
}

/// One thread a row, a loop over columns: for tiles of any shape.
inline dim3 grid_for(int rows, int cols) {
  return {blocks_for(rows, threads_a_block), std::min(static_cast<unsigned>(cols), most_blocks)};
}

/// Calls element(i, j) for the elements of a region of a tile of these sizes.
template <class Element>
__global__ void visit(int rows, int cols, TileRegion region, Element element) {
  const int i = static_cast<int>(blockIdx.x) * threads_a_block + static_cast<int>(threadIdx.x);
  for (int j = static_cast<int>(blockIdx.y); j < cols; j += static_cast<int>(gridDim.y)) {
    const Rows inside = rows_in(region, rows, j);
    if (i >= inside.begin && i < inside.end) element(i, j);
  }
}

}  // namespace quadriga::kernels::cuda
