// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/kernels/measure_test.cpp: norms and checks of tiles against plain loops.
#include "linalg/kernels/tile_measure.h"

#include "unit/kernels/matrices.h"

#include <quadriga/error.h>

#include <cmath>

namespace quadriga::kernels {
namespace {

template <class T>
class Measures : public ::testing::Test {};
TYPED_TEST_SUITE(Measures, Types);

TYPED_TEST(Measures, NormsOfALowerTriangle) {
  using T = TypeParam;
  const int rows = 23;
  const int cols = 17;
  const auto a = Matrix<T>::random(rows, cols, 1);
  double largest = 0;
  double squares = 0;
  std::vector<double> row_sums(rows);
  std::vector<double> column_sums(cols);
  std::vector<double> column_squares(cols);
  for (int j = 0; j < cols; ++j)
    for (int i = std::max(0, j - 4); i < rows; ++i) {
      const double size = std::abs(std::complex<double>(a(i, j)));
      largest = std::max(largest, size);
      squares += size * size;
      row_sums[i] += size;
      column_sums[j] += size;
      column_squares[j] += size * size;
    }
  const TileRegion region{Part::lower, 4};
  EXPECT_NEAR(max_abs<T>(a.input(), region), largest, 1e-12);
  EXPECT_NEAR(sum_of_squares<T>(a.input(), region), squares, 1e-12);
  std::vector<double> rows_found(rows, 1.0);
  std::vector<double> columns_found(cols, 1.0);
  std::vector<double> squares_found(cols, 1.0);
  add_row_sums<T>(a.input(), rows_found, region);
  add_column_sums<T>(a.input(), columns_found, region);
  add_column_squares<T>(a.input(), squares_found, region);
  for (int i = 0; i < rows; ++i) EXPECT_NEAR(rows_found[i], row_sums[i] + 1, 1e-12);
  for (int j = 0; j < cols; ++j) {
    EXPECT_NEAR(columns_found[j], column_sums[j] + 1, 1e-12);
    EXPECT_NEAR(squares_found[j], column_squares[j] + 1, 1e-12);
  }
}

TYPED_TEST(Measures, NanShowsInNorms) {
  using T = TypeParam;
  for (const int place : {0, 5, 11}) {
    auto a = Matrix<T>::random(12, 3, 1);
    a(place, 1) = not_a_number<T>();
    EXPECT_TRUE(std::isnan(max_abs<T>(a.input())));
    EXPECT_TRUE(std::isnan(sum_of_squares<T>(a.input())));
  }
}

TYPED_TEST(Measures, LogarithmOfTheDiagonal) {
  using T = TypeParam;
  auto a = Matrix<T>::positive(30, 1);
  double expected = 0;
  for (int i = 0; i < 30; ++i) expected += std::log(static_cast<double>(std::real(a(i, i))));
  EXPECT_NEAR(sum_log_diagonal<T>(a.input()), expected, 1e-9);
  EXPECT_EQ(sum_log_diagonal<T>(KernelTile<const T>{}), 0);
}

TYPED_TEST(Measures, FirstNotFinite) {
  using T = TypeParam;
  auto a = Matrix<T>::random(9, 6, 1);
  EXPECT_FALSE(first_not_finite<T>(a.input()));
  a(7, 4) = not_a_number<T>();
  a(1, 5) = T(std::numeric_limits<Real<T>>::infinity());
  const Place place = first_not_finite<T>(a.input());
  ASSERT_TRUE(place);
  EXPECT_EQ(place.row, 7);
  EXPECT_EQ(place.col, 4);
  EXPECT_EQ(first_not_finite<T>(a.input(), {Part::upper, 0}).row, 1);
  EXPECT_FALSE(first_not_finite<T>(a.input(), {Part::strict_upper, 4}));
}

TYPED_TEST(Measures, FirstNotHermitian) {
  using T = TypeParam;
  const auto a = Matrix<T>::random(9, 6, 1);
  auto b = applied(Op::conjugate, a);
  EXPECT_FALSE(first_not_hermitian<T>(a.input(), b.input()));
  b(2, 8) *= static_cast<Real<T>>(1.001);
  const Place place = first_not_hermitian<T>(a.input(), b.input());
  ASSERT_TRUE(place);
  EXPECT_EQ(place.row, 8);
  EXPECT_EQ(place.col, 2);
  EXPECT_FALSE(first_not_hermitian<T>(a.input(), b.input(), 0.002));
  EXPECT_FALSE(first_not_hermitian<T>(a.input(), b.input(), 0, 0.002));
  EXPECT_TRUE(first_not_hermitian<T>(a.input(), b.input(), 0.0005));
  b(2, 8) = not_a_number<T>();
  EXPECT_TRUE(first_not_hermitian<T>(a.input(), b.input(), 1, 1));
  EXPECT_THROW(first_not_hermitian<T>(a.input(), a.input()), Error);
}

TYPED_TEST(Measures, ComplexDiagonalOfAHermitianTileMustBeReal) {
  using T = TypeParam;
  auto a = Matrix<T>::positive(5, 1);
  EXPECT_FALSE(first_not_hermitian<T>(a.input(), a.input()));
  if constexpr (complex_type<T>) {
    a(3, 3) += T(0, Real<T>(0.1));
    EXPECT_EQ(first_not_hermitian<T>(a.input(), a.input()).row, 3);
  }
}

}  // namespace
}  // namespace quadriga::kernels
