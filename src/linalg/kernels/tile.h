// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/tile.h: what a tile is to a kernel, and the matrix kernels: products, solves,
// Cholesky.
//
// Kernels are instantiated for float, double, std::complex<float> and std::complex<double>. Tiles
// may have no rows or no columns; data may be null then. Nothing here allocates, and calls from
// several threads don't disturb each other. Results depend on the values and the shapes only: not
// on the leading dimension, the address or what other threads do.
#pragma once

#include <quadriga/matrix.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace quadriga::kernels {

using linalg::Op;
using linalg::Uplo;
enum class Side : std::uint8_t { left, right };
enum class Diag : std::uint8_t { non_unit, unit };

/// A column-major tile: element (i, j) at data[i + j*ld], ld >= max(1, rows).
template <class T>
struct KernelTile {
  T* data = nullptr;
  int rows = 0;
  int cols = 0;
  int ld = 1;

  T* column(int j) const noexcept { return data + static_cast<std::ptrdiff_t>(j) * ld; }
  T& operator()(int i, int j) const noexcept { return column(j)[i]; }
  bool empty() const noexcept { return rows == 0 || cols == 0; }
  operator KernelTile<const T>() const noexcept requires(!std::is_const_v<T>) {
    return {data, rows, cols, ld};
  }
};

/// A tile that is only read, and a scalar: both take their type from the tile that is written.
template <class T>
using Input = std::type_identity_t<KernelTile<const T>>;
template <class T>
using Value = std::type_identity_t<T>;

/// C = alpha*op(A)*op(B) + beta*C; with beta 0, C isn't read.
///
/// Shapes:  op(A) is m x k, op(B) is k x n, C is m x n and overlaps neither.
/// Errors:  invalid_argument if the shapes disagree.
/// Cost:    2mnk flops.
template <class T>
void gemm(Op op_a, Op op_b, Value<T> alpha, Input<T> a, Input<T> b, Value<T> beta, KernelTile<T> c);

/// The triangle `uplo` of C = alpha*op(A)*op(A)^T + beta*C; the other is left alone.
///
/// Shapes:  op(A) is n x k, C is n x n. `op` is none or transpose.
/// Errors:  invalid_argument if the shapes disagree, or for conjugate of a complex type.
/// Cost:    n^2 k flops.
template <class T>
void syrk(Uplo uplo, Op op, Value<T> alpha, Input<T> a, Value<T> beta, KernelTile<T> c);

/// The triangle `uplo` of C = alpha*op(A)*op(A)^H + beta*C; the diagonal becomes real. For real
/// types the same as syrk. `op` is none or conjugate (for real types transpose means the same).
template <class T>
void herk(Uplo uplo, Op op, double alpha, Input<T> a, double beta, KernelTile<T> c);

/// B = alpha*op(A)^-1*B (side left) or alpha*B*op(A)^-1 (side right), A triangular.
///
/// Shapes:  B is m x n, A m x m (left) or n x n (right); the other triangle of A isn't read.
/// Errors:  invalid_argument if the shapes disagree. A zero on the diagonal gives infinities.
/// Cost:    m^2 n (left) or m n^2 (right) flops.
template <class T>
void trsm(Side side, Uplo uplo, Op op, Diag diag, Value<T> alpha, Input<T> a, KernelTile<T> b);

/// A = L*L^H (lower) or U^H*U (upper) in its triangle `uplo`; the other is neither read
/// nor written.
///
/// Returns 0, or the order of the leading minor that isn't positive definite (or holds a NaN); the
/// triangle's content is unspecified then.
/// Errors:  invalid_argument if A isn't square.
/// Cost:    n^3/3 flops.
template <class T>
int potrf(Uplo uplo, KernelTile<T> a);

}  // namespace quadriga::kernels
