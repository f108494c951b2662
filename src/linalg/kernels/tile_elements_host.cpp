// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/tile_elements_host.cpp: copy, scale, set and mirror on the host.
#include "linalg/kernels/region.h"

#include <quadriga/error.h>

namespace quadriga::kernels {
namespace {

/// Edge of the squares in which a transposition walks, so that both sides stay in the first cache.
constexpr int edge = 16;

/// Calls element(source, target) for the elements of a region of C and their sources in A^T.
template <class T, class Element>
void walk_transposed(KernelTile<const T> a, KernelTile<T> c, const TileRegion& region,
                     Element element) {
  for (int first_col = 0; first_col < c.cols; first_col += edge)
    for (int first_row = 0; first_row < c.rows; first_row += edge) {
      const int last_col = std::min(first_col + edge, c.cols);
      for (int j = first_col; j < last_col; ++j) {
        const Rows rows = rows_in(region, c.rows, j);
        const int end = std::min(first_row + edge, rows.end);
        for (int i = std::max(first_row, rows.begin); i < end; ++i) element(a(j, i), c(i, j));
      }
    }
}

/// The same for A as it is.
template <class T, class Element>
void walk(KernelTile<const T> a, KernelTile<T> c, const TileRegion& region, Element element) {
  for (int j = 0; j < c.cols; ++j) {
    const Rows rows = rows_in(region, c.rows, j);
    const T* source = a.column(j);
    T* target = c.column(j);
    for (int i = rows.begin; i < rows.end; ++i) element(source[i], target[i]);
  }
}

/// Picks the walk for op, and conjugates the source for the adjoint.
template <class T, class Element>
void walk(Op op, KernelTile<const T> a, KernelTile<T> c, const TileRegion& region,
          Element element) {
  if (op == Op::none) {
    require(a.rows == c.rows && a.cols == c.cols, "the shapes of A and C disagree");
    walk(a, c, region, element);
    return;
  }
  require(a.rows == c.cols && a.cols == c.rows, "the shapes of A and C disagree");
  if (op == Op::transpose)
    walk_transposed(a, c, region, element);
  else
    walk_transposed(a, c, region,
                    [&](const T& source, T& target) { element(conjugate(source), target); });
}

}  // namespace

template <class T>
void copy(Op op, Input<T> a, KernelTile<T> c, TileRegion region) {
  walk(op, a, c, region, [](const T& source, T& target) { target = source; });
}

template <class T>
void scale(Value<T> alpha, KernelTile<T> c, TileRegion region) {
  if (alpha == T{1}) return;
  for (int j = 0; j < c.cols; ++j) {
    const Rows rows = rows_in(region, c.rows, j);
    T* column = c.column(j);
    if (alpha == T{})
      std::fill(column + rows.begin, column + rows.end, T{});
    else
      for (int i = rows.begin; i < rows.end; ++i) column[i] = multiply(alpha, column[i]);
  }
}

template <class T>
void axpby(Op op, Value<T> alpha, Input<T> a, Value<T> beta, KernelTile<T> c, TileRegion region) {
  if (beta == T{})
    walk(op, a, c, region, [=](const T& source, T& target) { target = multiply(alpha, source); });
  else
    walk(op, a, c, region, [=](const T& source, T& target) {
      target = multiply(alpha, source) + multiply(beta, target);
    });
}

template <class T>
void set(Value<T> value, Value<T> on_diagonal, KernelTile<T> c, TileRegion region) {
  for (int j = 0; j < c.cols; ++j) {
    const Rows rows = rows_in(region, c.rows, j);
    std::fill(c.column(j) + rows.begin, c.column(j) + rows.end, value);
    const std::int64_t crossing = j - region.diagonal;
    if (crossing >= rows.begin && crossing < rows.end) c.column(j)[crossing] = on_diagonal;
  }
}

template <class T>
void add_diagonal(Value<T> value, KernelTile<T> c, std::int64_t diagonal) {
  for (int j = 0; j < c.cols; ++j) {
    const std::int64_t crossing = j - diagonal;
    if (crossing >= 0 && crossing < c.rows) c.column(j)[crossing] += value;
  }
}

template <class T>
void mirror(Uplo stored, Op op, KernelTile<T> c) {
  require(c.rows == c.cols, "mirror: the tile must be square");
  require(op != Op::none, "mirror: op must be transpose or adjoint");
  const TileRegion other{stored == Uplo::lower ? Part::strict_upper : Part::strict_lower, 0};
  // Source and target are one tile, but no element is both.
  copy<T>(op, c, c, other);
  if (op == Op::conjugate && is_complex<T>)
    for (int i = 0; i < c.rows; ++i) c(i, i) = std::real(c(i, i));
}

#define QUADRIGA_INSTANTIATE(T)                                                     \
  template void copy<T>(Op, KernelTile<const T>, KernelTile<T>, TileRegion);        \
  template void scale<T>(T, KernelTile<T>, TileRegion);                             \
  template void axpby<T>(Op, T, KernelTile<const T>, T, KernelTile<T>, TileRegion); \
  template void set<T>(T, T, KernelTile<T>, TileRegion);                            \
  template void add_diagonal<T>(T, KernelTile<T>, std::int64_t);                    \
  template void mirror<T>(Uplo, Op, KernelTile<T>);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::kernels
