// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/kernels/matrices.h: matrices with guarded margins, and straightforward loops to
// compare with.
#pragma once

#include "linalg/kernels/tile_elements.h"

#include <gtest/gtest.h>

#include <complex>
#include <limits>
#include <vector>

namespace quadriga::kernels {

using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;

template <class T>
using Real = decltype(std::real(T{}));

template <class T>
constexpr bool complex_type = !std::is_floating_point_v<T>;

template <class T>
T conjugated(const T& value) {
  if constexpr (complex_type<T>)
    return std::conj(value);
  else
    return value;
}

template <class T>
T not_a_number() {
  return T(std::numeric_limits<Real<T>>::quiet_NaN());
}

/// A matrix with `margin` more rows in memory than it has; they hold a marker that must survive.
template <class T>
class Matrix {
 public:
  Matrix(int rows, int cols, int margin = 3)
      : rows_(rows),
        cols_(cols),
        ld_(std::max(1, rows + margin)),
        values_(static_cast<std::size_t>(ld_) * cols + 1, marker()) {
    set(T{}, T{}, tile());
  }
  static Matrix random(int rows, int cols, std::uint64_t seed, int margin = 3) {
    Matrix result(rows, cols, margin);
    fill_random({.seed = seed}, result.tile());
    return result;
  }
  /// Hermitian and positive definite.
  static Matrix positive(int order, std::uint64_t seed, int margin = 3) {
    Matrix result(order, order, margin);
    fill_random({.seed = seed, .on_diagonal = 1.0 * order, .hermitian = true}, result.tile());
    return result;
  }

  int rows() const { return rows_; }
  int cols() const { return cols_; }
  KernelTile<T> tile() { return {values_.data(), rows_, cols_, ld_}; }
  KernelTile<const T> input() const { return {values_.data(), rows_, cols_, ld_}; }
  T& operator()(int i, int j) { return values_[i + static_cast<std::size_t>(j) * ld_]; }
  const T& operator()(int i, int j) const { return values_[i + static_cast<std::size_t>(j) * ld_]; }

  bool margin_is_intact() const {
    for (std::size_t k = 0; k < values_.size(); ++k)
      if (static_cast<int>(k % ld_) >= rows_ && values_[k] != marker()) return false;
    return values_.back() == marker();
  }

 private:
  static T marker() { return T(-12345); }
  int rows_;
  int cols_;
  int ld_;
  std::vector<T> values_;
};

/// op(A) as a matrix of its own.
template <class T>
Matrix<T> applied(Op op, const Matrix<T>& a) {
  if (op == Op::none) return a;
  Matrix<T> result(a.cols(), a.rows());
  for (int j = 0; j < a.cols(); ++j)
    for (int i = 0; i < a.rows(); ++i)
      result(j, i) = op == Op::conjugate ? conjugated(a(i, j)) : a(i, j);
  return result;
}

template <class T>
Matrix<T> product(const Matrix<T>& a, const Matrix<T>& b) {
  Matrix<T> result(a.rows(), b.cols());
  for (int i = 0; i < a.rows(); ++i)
    for (int j = 0; j < b.cols(); ++j) {
      std::complex<double> sum = 0;
      for (int k = 0; k < a.cols(); ++k)
        sum += std::complex<double>(a(i, k)) * std::complex<double>(b(k, j));
      if constexpr (complex_type<T>)
        result(i, j) = T(sum);
      else
        result(i, j) = static_cast<T>(sum.real());
    }
  return result;
}

inline bool in_triangle(Uplo uplo, int i, int j) { return uplo == Uplo::lower ? i >= j : i <= j; }

/// One triangle, zero in the other; ones on the diagonal for Diag::unit.
template <class T>
Matrix<T> triangle_of(Uplo uplo, Diag diag, const Matrix<T>& a) {
  Matrix<T> result(a.rows(), a.cols());
  for (int j = 0; j < a.cols(); ++j)
    for (int i = 0; i < a.rows(); ++i) {
      if (in_triangle(uplo, i, j)) result(i, j) = a(i, j);
      if (i == j && diag == Diag::unit) result(i, j) = 1;
    }
  return result;
}

/// Rounding errors allowed for sums of `terms` products of numbers below 1.
template <class T>
double tolerance(int terms) {
  return 8.0 * (terms + 2) * std::numeric_limits<Real<T>>::epsilon();
}

template <class T>
void expect_near(const Matrix<T>& actual, const Matrix<T>& expected, double limit) {
  ASSERT_EQ(actual.rows(), expected.rows());
  ASSERT_EQ(actual.cols(), expected.cols());
  for (int j = 0; j < actual.cols(); ++j)
    for (int i = 0; i < actual.rows(); ++i)
      ASSERT_LE(std::abs(actual(i, j) - expected(i, j)), limit)
          << "at (" << i << ", " << j << "): " << actual(i, j) << ", expected " << expected(i, j);
  EXPECT_TRUE(actual.margin_is_intact());
}

template <class T>
void expect_same(const Matrix<T>& actual, const Matrix<T>& expected) {
  expect_near(actual, expected, 0);
}

}  // namespace quadriga::kernels
