// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/elements_cuda.cu: copy, scale, set and mirror on a device, to the host's bits.
#include "linalg/kernels/elements_cuda.h"

#include <quadriga/error.h>

#include "device/cuda/cuda_check.h"
#include "linalg/kernels/number_cuda.cuh"

namespace quadriga::kernels::cuda {
namespace {

using quadriga::cuda::check;

/// Edge of the squares in which a transposition passes through shared memory.
constexpr int edge = 32;
constexpr int rows_a_pass = 8;

template <class N, class Element>
struct ElementWalk {
  KernelTile<const N> a;
  KernelTile<N> c;
  Element element;
  __device__ void operator()(int i, int j) const {
    c.data[i + static_cast<std::ptrdiff_t>(j) * c.ld] =
        element(a.data[i + static_cast<std::ptrdiff_t>(j) * a.ld],
                c.data + i + static_cast<std::ptrdiff_t>(j) * c.ld);
  }
};

/// c(i,j) = element(a(j,i), &c(i,j)) in a region of C; A may be C where no element is both.
template <class N, class Element>
__global__ void walk_transposed(KernelTile<const N> a, KernelTile<N> c, TileRegion region,
                                Element element) {
  __shared__ N square[edge][edge + 1];
  const int first_row = static_cast<int>(blockIdx.x) * edge;
  const int x = static_cast<int>(threadIdx.x);
  for (int first_col = static_cast<int>(blockIdx.y) * edge; first_col < c.cols;
       first_col += static_cast<int>(gridDim.y) * edge) {
    for (int y = static_cast<int>(threadIdx.y); y < edge; y += rows_a_pass)
      if (first_col + x < a.rows && first_row + y < a.cols)
        square[y][x] = a.data[first_col + x + static_cast<std::ptrdiff_t>(first_row + y) * a.ld];
    __syncthreads();
    for (int y = static_cast<int>(threadIdx.y); y < edge; y += rows_a_pass) {
      const int i = first_row + x;
      const int j = first_col + y;
      if (j >= c.cols) continue;
      const Rows inside = rows_in(region, c.rows, j);
      N* const target = c.data + i + static_cast<std::ptrdiff_t>(j) * c.ld;
      if (i >= inside.begin && i < inside.end) *target = element(square[x][y], target);
    }
    __syncthreads();
  }
}

template <class N>
struct Assign {
  __device__ N operator()(N source, const N*) const { return source; }
};
template <class N>
struct Scaled {
  N alpha;
  __device__ N operator()(N source, const N*) const { return product(alpha, source); }
};
template <class N>
struct Combined {
  N alpha;
  N beta;
  __device__ N operator()(N source, const N* target) const {
    return sum(product(alpha, source), product(beta, *target));
  }
};
template <class N, class Element>
struct Conjugated {
  Element element;
  __device__ N operator()(N source, const N* target) const {
    return element(conjugate_of(source), target);
  }
};

template <class N, class Element>
void launch_transposed(cudaStream_t stream, KernelTile<const N> a, KernelTile<N> c,
                       const TileRegion& region, Element element) {
  const dim3 grid(blocks_for(c.rows, edge), std::min(blocks_for(c.cols, edge), most_blocks));
  walk_transposed<<<grid, dim3(edge, rows_a_pass), 0, stream>>>(a, c, region, element);
  check(cudaGetLastError(), "a transposition");
}

template <class N, class Element>
void launch(cudaStream_t stream, Op op, KernelTile<const N> a, KernelTile<N> c,
            const TileRegion& region, Element element) {
  const bool turned = op != Op::none;
  require((turned ? a.cols : a.rows) == c.rows && (turned ? a.rows : a.cols) == c.cols,
          "the shapes of A and C disagree");
  if (c.empty()) return;
  if (op == Op::transpose) return launch_transposed(stream, a, c, region, element);
  if (op == Op::conjugate)
    return launch_transposed(stream, a, c, region, Conjugated<N, Element>{element});
  visit<<<grid_for(c.rows, c.cols), threads_a_block, 0, stream>>>(
      c.rows, c.cols, region, ElementWalk<N, Element>{a, c, element});
  check(cudaGetLastError(), "an elementwise kernel");
}

template <class N>
struct Fill {
  KernelTile<N> c;
  N value;
  N on_diagonal;
  std::int64_t diagonal;
  __device__ void operator()(int i, int j) const {
    c.data[i + static_cast<std::ptrdiff_t>(j) * c.ld] = j - i == diagonal ? on_diagonal : value;
  }
};

template <class N>
__global__ void add_on_diagonal(KernelTile<N> c, N value, std::int64_t diagonal) {
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.x) * threads_a_block + threadIdx.x;
  const std::int64_t i = j - diagonal;
  if (j >= c.cols || i < 0 || i >= c.rows) return;
  N& element = c.data[i + j * c.ld];
  element = sum(element, value);
}

template <class Real>
__global__ void drop_imaginary(KernelTile<Pair<Real>> c) {
  const int i = static_cast<int>(blockIdx.x) * threads_a_block + static_cast<int>(threadIdx.x);
  if (i < c.rows) c.data[i + static_cast<std::ptrdiff_t>(i) * c.ld].imag = 0;
}

}  // namespace

template <class T>
void copy(cudaStream_t stream, Op op, Input<T> a, KernelTile<T> c, TileRegion region) {
  launch(stream, op, numbers(KernelTile<const T>(a)), numbers(c), region, Assign<Number<T>>{});
}

template <class T>
void set(cudaStream_t stream, Value<T> value, Value<T> on_diagonal, KernelTile<T> c,
         TileRegion region) {
  if (c.empty()) return;
  visit<<<grid_for(c.rows, c.cols), threads_a_block, 0, stream>>>(
      c.rows, c.cols, region,
      Fill<Number<T>>{numbers(c), number(value), number(on_diagonal), region.diagonal});
  check(cudaGetLastError(), "set");
}

template <class T>
void scale(cudaStream_t stream, Value<T> alpha, KernelTile<T> c, TileRegion region) {
  if (alpha == T{1}) return;
  if (alpha == T{}) return set(stream, T{}, T{}, c, region);
  launch(stream, Op::none, numbers(KernelTile<const T>(c)), numbers(c), region,
         Scaled<Number<T>>{number(alpha)});
}

template <class T>
void axpby(cudaStream_t stream, Op op, Value<T> alpha, Input<T> a, Value<T> beta, KernelTile<T> c,
           TileRegion region) {
  using N = Number<T>;
  const KernelTile<const N> source = numbers(KernelTile<const T>(a));
  if (beta == T{})
    launch(stream, op, source, numbers(c), region, Scaled<N>{number(alpha)});
  else
    launch(stream, op, source, numbers(c), region, Combined<N>{number(alpha), number(beta)});
}

template <class T>
void add_diagonal(cudaStream_t stream, Value<T> value, KernelTile<T> c, std::int64_t diagonal) {
  if (c.empty()) return;
  add_on_diagonal<<<blocks_for(c.cols, threads_a_block), threads_a_block, 0, stream>>>(
      numbers(c), number(value), diagonal);
  check(cudaGetLastError(), "add_diagonal");
}

template <class T>
void make_diagonal_real(cudaStream_t stream, KernelTile<T> c) {
  if constexpr (is_complex<T>) {
    if (c.empty()) return;
    drop_imaginary<<<blocks_for(c.rows, threads_a_block), threads_a_block, 0, stream>>>(numbers(c));
    check(cudaGetLastError(), "a diagonal made real");
  }
}

template <class T>
void mirror(cudaStream_t stream, Uplo stored, Op op, KernelTile<T> c) {
  require(c.rows == c.cols, "mirror: the tile must be square");
  require(op != Op::none, "mirror: op must be transpose or adjoint");
  const TileRegion other{stored == Uplo::lower ? Part::strict_upper : Part::strict_lower, 0};
  copy<T>(stream, op, c, c, other);
  if (op == Op::conjugate) make_diagonal_real(stream, c);
}

#define QUADRIGA_INSTANTIATE(T)                                                                   \
  template void copy<T>(cudaStream_t, Op, KernelTile<const T>, KernelTile<T>, TileRegion);        \
  template void scale<T>(cudaStream_t, T, KernelTile<T>, TileRegion);                             \
  template void axpby<T>(cudaStream_t, Op, T, KernelTile<const T>, T, KernelTile<T>, TileRegion); \
  template void set<T>(cudaStream_t, T, T, KernelTile<T>, TileRegion);                            \
  template void add_diagonal<T>(cudaStream_t, T, KernelTile<T>, std::int64_t);                    \
  template void make_diagonal_real<T>(cudaStream_t, KernelTile<T>);                               \
  template void mirror<T>(cudaStream_t, Uplo, Op, KernelTile<T>);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::kernels::cuda
