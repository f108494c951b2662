// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/tile_elements.h: kernels that work element by element: copy, scale, set,
// mirror, random.
//
// As in tile.h: four types, empty tiles allowed. A tile lies somewhere in a matrix, and the
// matrix's diagonal may cross it anywhere or not at all; `TileRegion` says which part of the tile
// is meant.
#pragma once

#include "linalg/kernels/tile.h"

namespace quadriga::kernels {

enum class Part : std::uint8_t { all, lower, upper, strict_lower, strict_upper };

/// The elements of a tile that lie in one part of the matrix.
struct TileRegion {
  Part part = Part::all;
  /// The tile's first row minus its first column in the matrix: its elements (i, i + diagonal) lie
  /// on the matrix's diagonal.
  std::int64_t diagonal = 0;
};

/// C = op(A) in a region of C; the rest of C is left alone. A and C don't overlap.
/// Errors: invalid_argument if the shapes disagree.
template <class T>
void copy(Op op, Input<T> a, KernelTile<T> c, TileRegion region = {});

/// C = alpha*C; with alpha 0, C isn't read.
template <class T>
void scale(Value<T> alpha, KernelTile<T> c, TileRegion region = {});

/// C = alpha*op(A) + beta*C; with beta 0, C isn't read.
/// Errors: invalid_argument if the shapes disagree.
template <class T>
void axpby(Op op, Value<T> alpha, Input<T> a, Value<T> beta, KernelTile<T> c,
           TileRegion region = {});

/// Sets a region to `value`, and what it has of the matrix's diagonal to `on_diagonal`.
template <class T>
void set(Value<T> value, Value<T> on_diagonal, KernelTile<T> c, TileRegion region = {});

/// Adds to the matrix's diagonal where it crosses the tile.
template <class T>
void add_diagonal(Value<T> value, KernelTile<T> c, std::int64_t diagonal = 0);

/// Fills the other strict triangle of a square tile on the diagonal from `stored`: with adjoint by
/// its conjugate (and the diagonal becomes real), with transpose as it is.
/// Errors: invalid_argument if C isn't square, or for Op::none.
template <class T>
void mirror(Uplo stored, Op op, KernelTile<T> c);

/// Which random matrix, and where in it a tile lies.
struct RandomMatrix {
  std::uint64_t seed = 0;
  std::int64_t first_row = 0;
  std::int64_t first_col = 0;
  /// Added to the diagonal: with the order of a hermitian matrix, it is SPD.
  double on_diagonal = 0;
  bool hermitian = false;
};

/// Random elements, uniform in [-0.5, 0.5) with every bit of the mantissa drawn (complex types:
/// both parts). An element depends on the seed and its place in the matrix only, so tiling
/// doesn't matter.
template <class T>
void fill_random(const RandomMatrix& random, KernelTile<T> c);

}  // namespace quadriga::kernels
