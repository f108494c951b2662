// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/kernels/covariance_test.cpp: covariance functions against libm, symmetry and tiling to
// the bit.
#include "linalg/kernels/covariance.h"

#include "base/random.h"
#include "linalg/kernels/exponential.h"
#include "unit/kernels/matrices.h"

#include <quadriga/error.h>

#include <cmath>

namespace quadriga::kernels {
namespace {

constexpr CovarianceKind kinds[] = {CovarianceKind::rbf, CovarianceKind::matern12,
                                    CovarianceKind::matern32, CovarianceKind::matern52};

std::vector<double> random_coordinates(std::size_t count) {
  Random random(3);
  std::vector<double> result(count);
  for (double& value : result) value = 10 * random.uniform() - 2;
  return result;
}

long double expected(const CovarianceParams& params, const double* x, const double* y, int dims) {
  long double squared = 0;
  for (int d = 0; d < dims; ++d) {
    const double scale = params.length_scale[params.length_scale.size() == 1 ? 0 : d];
    const long double difference = (static_cast<long double>(x[d]) - y[d]) / scale;
    squared += difference * difference;
  }
  const long double s3 = std::sqrt(3 * squared);
  const long double s5 = std::sqrt(5 * squared);
  switch (params.kind) {
    case CovarianceKind::rbf:
      return params.variance * std::exp(-squared / 2);
    case CovarianceKind::matern12:
      return params.variance * std::exp(-std::sqrt(squared));
    case CovarianceKind::matern32:
      return params.variance * (1 + s3) * std::exp(-s3);
    case CovarianceKind::matern52:
      return params.variance * (1 + s5 + s5 * s5 / 3) * std::exp(-s5);
  }
  return 0;
}

TEST(Exponential, IsWithinTwoUnitsOfTheLastPlace) {
  Random random(1);
  for (int k = 0; k < 200000; ++k) {
    const double x = -708 * random.uniform() * random.uniform() * random.uniform();
    const long double exact = std::exp(static_cast<long double>(x));
    ASSERT_NEAR(static_cast<double>(exp_of_negative(x) / exact), 1.0, 4.5e-16) << x;
  }
  EXPECT_EQ(exp_of_negative(0), 1);
  EXPECT_EQ(exp_of_negative(-0.0), 1);
  EXPECT_EQ(exp_of_negative(-1e300), 0);
  EXPECT_EQ(exp_of_negative(-std::numeric_limits<double>::infinity()), 0);
}

TEST(Covariances, AgreeWithTheirFormulas) {
  for (const CovarianceKind kind : kinds)
    for (const int dims : {1, 2, 3, 6}) {
      CovarianceParams params{kind, 2.5, 0.125, {1.75}};
      if (dims == 3) params.length_scale = {0.5, 2, 8};
      const int count = 75;
      const auto coordinates = random_coordinates(static_cast<std::size_t>(count) * dims);
      const Covariance covariance(params, Points(coordinates, dims));
      Matrix<double> a(count, count);
      covariance.fill(0, 0, a.tile());
      EXPECT_TRUE(a.margin_is_intact());
      for (int j = 0; j < count; ++j)
        for (int i = 0; i < count; ++i) {
          const double* points = coordinates.data();
          const double exact =
              static_cast<double>(expected(params, points + i * dims, points + j * dims, dims));
          ASSERT_NEAR(a(i, j), i == j ? 2.625 : exact, 1e-14 * std::max(exact, 1e-3));
        }
    }
}

template <class T>
void check_tiling(CovarianceKind kind, int dims) {
  const int count = 150;
  const auto coordinates = random_coordinates(static_cast<std::size_t>(count) * dims);
  const Covariance covariance({kind, 1.5, 0.1, {2}}, Points(coordinates, dims));
  Matrix<T> whole(count, count);
  covariance.fill(0, 0, whole.tile());
  expect_same(applied(Op::transpose, whole), whole);
  Matrix<T> tiled(count, count);
  const KernelTile<T> all = tiled.tile();
  for (int col = 0; col < count; col += 41)
    for (int row = 0; row < count; row += 67)
      covariance.fill(row, col,
                      KernelTile<T>{&all(row, col), std::min(67, count - row),
                                    std::min(41, count - col), all.ld});
  expect_same(tiled, whole);
  Matrix<T> single(1, 1);
  covariance.fill(count - 1, 3, single.tile());
  EXPECT_EQ(single(0, 0), whole(count - 1, 3));
}

TEST(Covariances, AreSymmetricAndIndependentOfTheTilingToTheBit) {
  for (const CovarianceKind kind : kinds)
    for (const int dims : {1, 2, 3, 5}) {
      check_tiling<double>(kind, dims);
      check_tiling<float>(kind, dims);
    }
}

TEST(Covariances, BetweenTwoSetsHaveNoNugget) {
  const auto coordinates = random_coordinates(20 * 2);
  const Points points(coordinates, 2);
  const Points some(std::span<const double>(coordinates).first(5 * 2), 2);
  const CovarianceParams params{CovarianceKind::matern32, 2, 1, {1}};
  const Covariance same(params, points);
  const Covariance cross(params, some, points);
  EXPECT_EQ(cross.rows(), 5);
  EXPECT_EQ(cross.cols(), 20);
  Matrix<double> a(20, 20);
  Matrix<double> b(5, 20);
  same.fill(0, 0, a.tile());
  cross.fill(0, 0, b.tile());
  for (int j = 0; j < 20; ++j)
    for (int i = 0; i < 5; ++i) EXPECT_EQ(b(i, j), i == j ? 2.0 : a(i, j));
}

TEST(Covariances, OfFarPointsVanish) {
  const std::vector<double> coordinates{0, 1e300, -1e300};
  for (const CovarianceKind kind : kinds) {
    const Covariance covariance({kind, 1, 0, {1e-3}}, Points(coordinates, 1));
    Matrix<double> a(3, 3);
    covariance.fill(0, 0, a.tile());
    EXPECT_EQ(a(0, 1), 0);
    EXPECT_EQ(a(2, 1), 0);
    EXPECT_EQ(a(2, 2), 1);
  }
}

TEST(Covariances, OfNoPointsAreEmpty) {
  const Covariance covariance({}, Points({}, 2));
  EXPECT_EQ(covariance.rows(), 0);
  covariance.fill(0, 0, KernelTile<double>{});
}

TEST(Covariances, RefuseWhatMakesNoSense) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> coordinates{0, 1, 2, 3};
  const Points points(coordinates, 2);
  EXPECT_THROW(Points(coordinates, 3), Error);
  EXPECT_THROW(Points(coordinates, 0), Error);
  EXPECT_THROW(Points(std::vector<double>{0, nan}, 1), Error);
  const CovarianceKind kind = CovarianceKind::rbf;
  EXPECT_THROW(Covariance({kind, 1, 0, {1, 1, 1}}, points), Error);
  EXPECT_THROW(Covariance({kind, 1, 0, {0}}, points), Error);
  EXPECT_THROW(Covariance({kind, nan, 0, {1}}, points), Error);
  EXPECT_THROW(Covariance({kind, 1, -1, {1}}, points), Error);
  EXPECT_THROW(Covariance({kind, 1, 0, {1}}, points, Points(coordinates, 1)), Error);
  const Covariance covariance({kind, 1, 0, {1, 2}}, points);
  Matrix<double> a(3, 2);
  EXPECT_THROW(covariance.fill(0, 0, a.tile()), Error);
}

}  // namespace
}  // namespace quadriga::kernels
