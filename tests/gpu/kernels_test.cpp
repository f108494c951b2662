// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/kernels_test.cpp: CUDA variants give what the host's give: elementwise ones to the bit.
#include <quadriga/error.h>

#include "gpu/on_device.h"

namespace quadriga::kernels {
namespace {

template <class T>
class CudaKernels : public OnDevice {
 protected:
  /// Runs both variants on the same operands; compares the last one to a tolerance, 0: to the bit.
  template <class Params>
  void compare(const Codelet& codelet, std::vector<Matrix<T>> operands, const Params& params,
               double limit = 0) {
    std::vector<Matrix<T>> expected = operands;
    call(codelet.cpu, expected, params);
    switch (operands.size()) {
      case 1:
        this->run(codelet, {view_of(operands[0])}, params);
        break;
      case 2:
        this->run(codelet, {view_of(operands[0]), view_of(operands[1])}, params);
        break;
      default:
        this->run(codelet, {view_of(operands[0]), view_of(operands[1]), view_of(operands[2])},
                  params);
    }
    ASSERT_EQ(this->error_, nullptr) << codelet.name;
    SCOPED_TRACE(codelet.name);
    expect_near(operands.back(), expected.back(), limit);
  }

 private:
  template <class Params>
  static void call(const Kernel& kernel, std::vector<Matrix<T>>& operands, const Params& params) {
    std::vector<View> views;
    for (Matrix<T>& operand : operands) views.push_back(view_of(operand));
    kernel({views, std::as_bytes(std::span(&params, 1)), nullptr});
  }
};
TYPED_TEST_SUITE(CudaKernels, Types);

constexpr Op ops[] = {Op::none, Op::transpose, Op::conjugate};
constexpr Uplo triangles[] = {Uplo::lower, Uplo::upper};
constexpr Part parts[] = {Part::all, Part::lower, Part::upper, Part::strict_lower,
                          Part::strict_upper};

template <class T>
Matrix<T> wrong(int rows, int cols) {
  Matrix<T> result(rows, cols);
  set(not_a_number<T>(), not_a_number<T>(), result.tile());
  return result;
}

TYPED_TEST(CudaKernels, Products) {
  using T = TypeParam;
  const DType type = dtype_of<T>;
  for (const Op op_a : ops) {
    for (const Op op_b : ops) {
      const auto a = op_a == Op::none ? Matrix<T>::random(70, 41, 1) : Matrix<T>::random(41, 70, 1);
      const auto b = op_b == Op::none ? Matrix<T>::random(41, 33, 2) : Matrix<T>::random(33, 41, 2);
      const GemmParams params{{-1, 0.5}, {0.5, 1}, op_a, op_b};
      this->compare(gemm_codelet(type), {a, b, Matrix<T>::random(70, 33, 3)}, params,
                    tolerance<T>(41));
      this->compare(gemm_write_codelet(type), {a, b, wrong<T>(70, 33)}, params, tolerance<T>(41));
    }
  }
  this->compare(gemm_codelet(type), {Matrix<T>(5, 0), Matrix<T>(0, 4), Matrix<T>::random(5, 4, 1)},
                GemmParams{{1, 0}, {2, 0}, Op::none, Op::none});
}

/// Edges that are no whole number of loads of 16 bytes are cut: all of the product is there.
TYPED_TEST(CudaKernels, ProductsOfOddEdges) {
  using T = TypeParam;
  constexpr int m = 517, n = 519, k = 515;
  for (const Op op_a : ops) {
    for (const Op op_b : ops) {
      const auto a = op_a == Op::none ? Matrix<T>::random(m, k, 1) : Matrix<T>::random(k, m, 1);
      const auto b = op_b == Op::none ? Matrix<T>::random(k, n, 2) : Matrix<T>::random(n, k, 2);
      this->compare(gemm_write_codelet(dtype_of<T>), {a, b, wrong<T>(m, n)},
                    GemmParams{{-1, 0.5}, {0, 0}, op_a, op_b}, tolerance<T>(k));
      this->compare(gemm_codelet(dtype_of<T>), {a, b, Matrix<T>::random(m, n, 3)},
                    GemmParams{{-1, 0.5}, {0.5, 1}, op_a, op_b}, tolerance<T>(k));
    }
  }
}

TYPED_TEST(CudaKernels, ProductsWithAPartOfTheRightFactor) {
  using T = TypeParam;
  const auto a = Matrix<T>::random(70, 20, 1);
  const auto c = Matrix<T>::random(70, 33, 3);
  const GemmParams plain{{-1, 0.5}, {0.5, 1}, Op::none, Op::none, false, false, 15};
  const GemmParams turned{{-1, 0.5}, {0.5, 1}, Op::none, Op::conjugate, false, false, 15};
  this->compare(gemm_codelet(dtype_of<T>), {a, Matrix<T>::random(41, 33, 2), c}, plain,
                tolerance<T>(20));
  this->compare(gemm_codelet(dtype_of<T>), {a, Matrix<T>::random(33, 41, 2), c}, turned,
                tolerance<T>(20));
}

TYPED_TEST(CudaKernels, RankUpdates) {
  using T = TypeParam;
  const DType type = dtype_of<T>;
  const double limit = tolerance<T>(23);
  for (const Uplo uplo : triangles) {
    for (const bool turned : {false, true}) {
      const auto a = turned ? Matrix<T>::random(23, 50, 1) : Matrix<T>::random(50, 23, 1);
      const SyrkParams plain{{2, 0}, {-1, 0}, uplo, turned ? Op::transpose : Op::none};
      const SyrkParams adjoint{{2, 0}, {-1, 0}, uplo, turned ? Op::conjugate : Op::none};
      const auto c = Matrix<T>::random(50, 50, 2);
      this->compare(syrk_codelet(type), {a, c}, plain, limit);
      this->compare(syrk_write_codelet(type), {a, wrong<T>(50, 50)}, plain, limit);
      this->compare(herk_codelet(type), {a, c}, adjoint, limit);
      this->compare(herk_write_codelet(type), {a, wrong<T>(50, 50)}, adjoint, limit);
    }
  }
}

TYPED_TEST(CudaKernels, ProductsThatTurnTheirRightFactorFirst) {
  using T = TypeParam;
  if (!std::is_same_v<T, double>) return;
  const auto a = Matrix<T>::random(4100, 1030, 1);
  const auto b = Matrix<T>::random(1025, 1030, 2);
  this->compare(gemm_codelet(dtype_of<T>), {a, b, Matrix<T>::random(4100, 1025, 3)},
                GemmParams{{-1, 0}, {1, 0}, Op::none, Op::conjugate}, tolerance<T>(1030));
}

TYPED_TEST(CudaKernels, TriangularSolves) {
  using T = TypeParam;
  for (const Side side : {Side::left, Side::right})
    for (const Uplo uplo : triangles)
      for (const Op op : ops)
        for (const Diag diag : {Diag::non_unit, Diag::unit}) {
          auto a = Matrix<T>::random(30, 30, 1);
          scale(T(0.125f), a.tile());
          add_diagonal(T(4), a.tile());
          const auto b =
              side == Side::left ? Matrix<T>::random(30, 19, 2) : Matrix<T>::random(19, 30, 2);
          this->compare(trsm_codelet(dtype_of<T>), {a, b}, TrsmParams{{2, 0}, side, uplo, op, diag},
                        tolerance<T>(60));
        }
}

TYPED_TEST(CudaKernels, TriangularSolvesByHalves) {
  using T = TypeParam;
  for (const int order : {64, 129, 500})
    for (const Side side : {Side::left, Side::right})
      for (const Uplo uplo : triangles)
        for (const Op op : ops) {
          auto a = Matrix<T>::random(order, order, 1);
          scale(T(1.0f / static_cast<float>(order)), a.tile());
          add_diagonal(T(4), a.tile());
          const auto b = side == Side::left ? Matrix<T>::random(order, 75, 2)
                                            : Matrix<T>::random(75, order, 2);
          this->compare(trsm_codelet(dtype_of<T>), {a, b},
                        TrsmParams{{1, 0}, side, uplo, op, Diag::non_unit}, tolerance<T>(order));
        }
}

TYPED_TEST(CudaKernels, TriangularSolvesOfManyRightHandSides) {
  using T = TypeParam;
  constexpr int order = 130;
  for (const int sides : {2300, 4500})
    for (const Side side : {Side::left, Side::right}) {
      auto a = Matrix<T>::random(order, order, 1);
      scale(T(1.0f / static_cast<float>(order)), a.tile());
      add_diagonal(T(4), a.tile());
      const auto b = side == Side::left ? Matrix<T>::random(order, sides, 2)
                                        : Matrix<T>::random(sides, order, 2);
      this->compare(trsm_codelet(dtype_of<T>), {a, b},
                    TrsmParams{{1, 0}, side, Uplo::lower, Op::conjugate, Diag::non_unit},
                    tolerance<T>(order));
    }
}

/// The largest element of X*L^T - B over those of X and L, for a condition of 1e6 and more.
double backward_error(const Matrix<double>& l, const Matrix<double>& x, const Matrix<double>& b) {
  long double worst = 0;
  double largest_x = 0;
  double norm = 0;
  for (int j = 0; j < l.rows(); ++j) {
    double sum = 0;
    for (int k = 0; k <= j; ++k) sum += std::abs(l(j, k));
    norm = std::max(norm, sum);
    for (int i = 0; i < x.rows(); ++i) {
      long double rest = b(i, j);
      for (int k = 0; k <= j; ++k) rest -= static_cast<long double>(x(i, k)) * l(j, k);
      worst = std::max(worst, std::abs(rest));
      largest_x = std::max(largest_x, std::abs(x(i, j)));
    }
  }
  return static_cast<double>(worst) / (norm * largest_x);
}

TEST_F(OnDevice, TriangularSolvesAreBackwardStable) {
  constexpr int order = 700;
  auto l = Matrix<double>::random(order, order, 1);
  scale(0.08, l.tile());
  add_diagonal(0.6, l.tile());
  const auto b = Matrix<double>::random(40, order, 2);
  auto x = b;
  run(trsm_codelet(DType::float64), {view_of(l), view_of(x)},
      TrsmParams{{1, 0}, Side::right, Uplo::lower, Op::conjugate, Diag::non_unit});
  ASSERT_EQ(error_, nullptr);
  EXPECT_LE(backward_error(l, x, b), 1e-14);
}

TYPED_TEST(CudaKernels, CholeskyWritesItsTriangleOnly) {
  using T = TypeParam;
  for (const int order : {1, 33, 200, 700})
    for (const Uplo uplo : triangles)
      this->compare(potrf_codelet(dtype_of<T>), {Matrix<T>::positive(order, 5)},
                    PotrfParams{0, uplo}, tolerance<T>(order));
}

TYPED_TEST(CudaKernels, PotrfNamesTheMinorOfTheWholeMatrix) {
  using T = TypeParam;
  for (const T bad : {T(-1), not_a_number<T>()}) {
    for (const int place : {0, 6, 299}) {
      auto a = Matrix<T>::positive(300, 1);
      a(place, place) = bad;
      this->run(potrf_codelet(dtype_of<T>), {view_of(a)}, PotrfParams{.first = 5'000'000'000});
      ASSERT_TRUE(this->error_);
      try {
        std::rethrow_exception(this->error_);
      } catch (const NotPositiveDefinite& error) {
        EXPECT_EQ(error.minor(), 5'000'000'001 + place);
      }
    }
  }
}

TYPED_TEST(CudaKernels, ElementsToTheBit) {
  using T = TypeParam;
  const DType type = dtype_of<T>;
  for (const Part part : parts) {
    for (const std::int64_t diagonal : {0, 5, -40}) {
      const TileRegion region{part, diagonal};
      for (const Op op : ops) {
        const auto a =
            op == Op::none ? Matrix<T>::random(300, 70, 1) : Matrix<T>::random(70, 300, 1);
        const auto c = Matrix<T>::random(300, 70, 2);
        this->compare(copy_codelet(type), {a, c}, CopyParams{op, region});
        this->compare(copy_write_codelet(type), {a, wrong<T>(300, 70)}, CopyParams{op, region});
        this->compare(axpby_codelet(type), {a, c}, AxpbyParams{{0.3, 2}, {0.7, -1}, op, region});
        this->compare(axpby_codelet(type), {a, c}, AxpbyParams{{0.3, 2}, {}, op, region});
      }
      const auto c = Matrix<T>::random(300, 70, 2);
      this->compare(scale_codelet(type), {c}, ScaleParams{{0.3, 2}, region});
      this->compare(scale_codelet(type), {c}, ScaleParams{{0, 0}, region});
      this->compare(set_codelet(type), {c}, SetParams{{3, 1}, {4, 2}, region});
      this->compare(set_write_codelet(type), {wrong<T>(300, 70)},
                    SetParams{{3, 1}, {4, 2}, region});
      this->compare(add_diagonal_codelet(type), {c}, AddDiagonalParams{{2, 1}, diagonal});
    }
  }
}

TYPED_TEST(CudaKernels, MirrorsToTheBit) {
  using T = TypeParam;
  for (const Uplo uplo : triangles)
    for (const Op op : {Op::transpose, Op::conjugate})
      this->compare(mirror_codelet(dtype_of<T>), {Matrix<T>::random(101, 101, 4)},
                    MirrorParams{uplo, op});
}

TYPED_TEST(CudaKernels, RandomElementsToTheBit) {
  using T = TypeParam;
  for (const bool hermitian : {false, true})
    for (const std::int64_t first_row : {0, 40, 400})
      this->compare(random_codelet(dtype_of<T>), {wrong<T>(200, 90)},
                    RandomMatrix{.seed = 9,
                                 .first_row = first_row,
                                 .first_col = 50,
                                 .on_diagonal = 7.5,
                                 .hermitian = hermitian});
}

TYPED_TEST(CudaKernels, Measures) {
  using T = TypeParam;
  auto a = Matrix<T>::positive(150, 3);
  for (const auto& [what, length] :
       {std::pair(Measure::max_abs, 1), std::pair(Measure::sum_of_squares, 1),
        std::pair(Measure::sum_log_diagonal, 1), std::pair(Measure::column_sums, 150),
        std::pair(Measure::column_squares, 150), std::pair(Measure::row_sums, 150)}) {
    for (const Part part : parts) {
      const MeasureParams params{what, {part, 0}};
      Matrix<double> result(length, 1);
      Matrix<double> expected(length, 1);
      const std::vector<View> views{view_of(a), view_of(expected)};
      measure_codelet(dtype_of<T>).cpu({views, std::as_bytes(std::span(&params, 1)), nullptr});
      this->run(measure_codelet(dtype_of<T>), {view_of(a), view_of(result)}, params);
      ASSERT_EQ(this->error_, nullptr);
      expect_near(result, expected, 1e-12 * max_of(expected));
    }
  }
}

class CudaCovariance : public OnDevice {
 protected:
  template <class T>
  void compare(const Covariance& covariance, std::int64_t row, std::int64_t col) {
    Matrix<T> actual(300, 70);
    Matrix<T> expected(300, 70);
    covariance.fill(row, col, expected.tile());
    this->run(covariance_codelet(dtype_of<T>), {view_of(actual)},
              CovarianceTile{&covariance, row, col});
    ASSERT_EQ(this->error_, nullptr);
    expect_same(actual, expected);
  }
};

TEST_F(CudaCovariance, ToTheBit) {
  Matrix<double> coordinates = Matrix<double>::random(3000, 1, 8, 0);
  const std::span<const double> all(coordinates.tile().data, 3000);
  const Points points(all, 3);
  const Points others(all.subspan(600), 3);
  for (const CovarianceKind kind : {CovarianceKind::rbf, CovarianceKind::matern12,
                                    CovarianceKind::matern32, CovarianceKind::matern52}) {
    const CovarianceParams params{kind, 1.7, 0.01, {0.3, 0.2, 0.5}};
    const Covariance of_one(params, points);
    compare<double>(of_one, 100, 200);
    compare<float>(of_one, 500, 0);
    compare<double>(Covariance(params, points, others), 0, 600);
    compare<double>(Covariance({kind, 1, 0, {1e-5}}, points), 0, 0);
  }
}

}  // namespace
}  // namespace quadriga::kernels
