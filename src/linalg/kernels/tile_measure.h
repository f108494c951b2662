// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/tile_measure.h: kernels that measure or check a tile, and leave it as it is.
//
// As in tile.h: four types, empty tiles allowed. Sums are formed in double, in one fixed order. A
// NaN in what is measured makes the result NaN. The type is named: max_abs<double>(tile).
#pragma once

#include "linalg/kernels/tile_elements.h"

#include <span>

namespace quadriga::kernels {

/// The largest |a(i,j)|; 0 for an empty region.
template <class T>
double max_abs(KernelTile<const T> a, TileRegion region = {});

/// The sum of |a(i,j)|^2, a part of the Frobenius norm; overflows where a square does.
template <class T>
double sum_of_squares(KernelTile<const T> a, TileRegion region = {});

/// sums[j] += sum of |a(i,j)| over i, a part of the one-norm; sums has a.cols elements.
template <class T>
void add_column_sums(KernelTile<const T> a, std::span<double> sums, TileRegion region = {});

/// sums[i] += sum of |a(i,j)| over j, a part of the infinity norm; sums has a.rows elements.
template <class T>
void add_row_sums(KernelTile<const T> a, std::span<double> sums, TileRegion region = {});

/// squares[j] += sum of |a(i,j)|^2 over i: with A the inverse of a Cholesky factor, parts of the
/// diagonal of the inverse. squares has a.cols elements.
template <class T>
void add_column_squares(KernelTile<const T> a, std::span<double> squares, TileRegion region = {});

/// The sum of log(real part of a(i,i)): half the logarithm of the determinant that a tile of a
/// Cholesky factor stands for.
template <class T>
double sum_log_diagonal(KernelTile<const T> a);

/// A place in a tile; row -1: none.
struct Place {
  int row = -1;
  int col = -1;
  explicit operator bool() const noexcept { return row >= 0; }
};

/// The first element, by columns, that is NaN or infinite.
template <class T>
Place first_not_finite(KernelTile<const T> a, TileRegion region = {});

/// The first element, by columns, with |a(i,j) - conj(b(j,i))| > absolute + relative*|b(j,i)|, or
/// with a NaN. Of a hermitian matrix, A and B are tiles (p,q) and (q,p).
/// Errors: invalid_argument if the shapes disagree.
template <class T>
Place first_not_hermitian(KernelTile<const T> a, KernelTile<const T> b, double relative = 0,
                          double absolute = 0);

}  // namespace quadriga::kernels
