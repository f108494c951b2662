// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/covariance.h: covariance matrices of points, computed tile by tile where they
// are needed.
//
// An element depends on its two points only, to the bit: not on the tile, the thread or the order.
// Swapping the points gives the same bits, so the matrix of one set of points is symmetric.
#pragma once

#include "linalg/kernels/tile.h"

#include <memory>
#include <span>
#include <vector>

namespace quadriga::kernels {

using linalg::CovarianceKind;

struct CovarianceParams {
  CovarianceKind kind = CovarianceKind::matern32;
  double variance = 1;  ///< The covariance of a point with itself, without the nugget.
  double nugget = 0;    ///< Added on the diagonal of a matrix of one set of points.
  /// One for all dimensions, or one for each.
  std::vector<double> length_scale = {1};
};

/// Points of a few dimensions, kept by coordinate. Copies share the memory.
class Points {
 public:
  /// From an array of count x dimensions, row by row.
  /// Errors: invalid_argument if dimensions < 1, the array isn't full, or a coordinate
  /// isn't finite.
  Points(std::span<const double> coordinates, int dimensions);
  std::int64_t count() const noexcept { return count_; }
  int dimensions() const noexcept { return dimensions_; }
  /// All values of one coordinate; readable for `padding` elements beyond the last point.
  const double* coordinate(int dimension) const noexcept;
  /// All of it: coordinate by coordinate, count() + padding values each.
  const std::shared_ptr<const std::vector<double>>& values() const noexcept { return values_; }
  static constexpr int padding = 64;

 private:
  std::int64_t count_ = 0;
  int dimensions_ = 0;
  std::shared_ptr<const std::vector<double>> values_;
};

/// The matrix of covariances between points: element (i, j) for r, the distance of row point i and
/// column point j with each coordinate divided by its length scale, is variance times
///   rbf: exp(-r^2/2)    matern12: exp(-r)    matern32: (1 + s) exp(-s), s = sqrt(3) r
///   matern52: (1 + s + s^2/3) exp(-s), s = sqrt(5) r
/// Source: Rasmussen, Williams, Gaussian Processes for Machine Learning, 2006, section 4.2.
class Covariance {
 public:
  /// Of one set of points with itself; the nugget is added on the diagonal.
  /// Errors: invalid_argument for a length scale or variance that isn't positive and finite, a
  /// negative nugget, or as many length scales as fit neither one nor the dimensions.
  Covariance(const CovarianceParams& params, const Points& points);
  /// Between two sets of points; no nugget. Errors: as above, or if the dimensions differ.
  Covariance(const CovarianceParams& params, const Points& rows, const Points& cols);

  std::int64_t rows() const noexcept { return rows_.count(); }
  std::int64_t cols() const noexcept { return cols_.count(); }
  const CovarianceParams& params() const noexcept { return params_; }
  const Points& row_points() const noexcept { return rows_; }
  const Points& col_points() const noexcept { return cols_; }
  bool of_one_set() const noexcept { return same_; }
  /// One for each dimension.
  const std::vector<double>& inverse_scales() const noexcept { return inverse_scales_; }

  /// Writes the elements from (first_row, first_col) on, as many as the tile has. Any thread.
  ///
  /// Types:   float, double; computed in double.
  /// Errors:  invalid_argument if the tile reaches beyond the matrix.
  template <class T>
  void fill(std::int64_t first_row, std::int64_t first_col, KernelTile<T> out) const;

 private:
  CovarianceParams params_;
  Points rows_;
  Points cols_;
  bool same_ = false;  ///< One set of points: the diagonal has the nugget.
  std::vector<double> inverse_scales_;
};

}  // namespace quadriga::kernels
