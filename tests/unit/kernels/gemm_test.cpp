// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/kernels/gemm_test.cpp: gemm, syrk and herk against plain loops, all types and ops.
#include "linalg/kernels/codelets.h"
#include "unit/kernels/matrices.h"

#include <quadriga/error.h>

namespace quadriga::kernels {
namespace {

constexpr Op ops[] = {Op::none, Op::transpose, Op::conjugate};
constexpr Uplo triangles[] = {Uplo::lower, Uplo::upper};

template <class T>
class Products : public ::testing::Test {};
TYPED_TEST_SUITE(Products, Types);

template <class T>
Matrix<T> operand(Op op, int rows, int cols, std::uint64_t seed) {
  return op == Op::none ? Matrix<T>::random(rows, cols, seed) : Matrix<T>::random(cols, rows, seed);
}

/// alpha*P + beta*C by plain loops.
template <class T>
Matrix<T> combined(T alpha, const Matrix<T>& p, T beta, const Matrix<T>& c) {
  Matrix<T> result(c.rows(), c.cols());
  for (int j = 0; j < c.cols(); ++j)
    for (int i = 0; i < c.rows(); ++i)
      result(i, j) = beta == T{} ? alpha * p(i, j) : alpha * p(i, j) + beta * c(i, j);
  return result;
}

template <class T>
T some_scalar(double real, double imag) {
  if constexpr (complex_type<T>)
    return T(static_cast<Real<T>>(real), static_cast<Real<T>>(imag));
  else
    return static_cast<T>(real);
}

TYPED_TEST(Products, GemmForAllOpsAndOddSizes) {
  using T = TypeParam;
  const int sizes[][3] = {{1, 1, 1}, {5, 3, 7}, {17, 33, 9}, {64, 31, 65}, {2, 70, 1}};
  const T alpha = some_scalar<T>(-0.75, 0.5);
  for (const Op op_a : ops)
    for (const Op op_b : ops)
      for (const auto& [m, n, k] : sizes)
        for (const T beta : {T(0), T(1), some_scalar<T>(0.5, -0.25)}) {
          const auto a = operand<T>(op_a, m, k, 1);
          const auto b = operand<T>(op_b, k, n, 2);
          auto c = Matrix<T>::random(m, n, 3);
          const auto expected =
              combined(alpha, product(applied(op_a, a), applied(op_b, b)), beta, c);
          gemm(op_a, op_b, alpha, a.input(), b.input(), beta, c.tile());
          expect_near(c, expected, tolerance<T>(k));
        }
}

TYPED_TEST(Products, GemmWithBetaZeroIgnoresNanInC) {
  using T = TypeParam;
  for (const int k : {0, 1, 5, 40}) {
    const auto a = Matrix<T>::random(19, k, 1);
    const auto b = Matrix<T>::random(k, 13, 2);
    Matrix<T> c(19, 13);
    set(not_a_number<T>(), not_a_number<T>(), c.tile());
    gemm(Op::none, Op::none, T(1), a.input(), b.input(), T(0), c.tile());
    expect_near(c, product(a, b), tolerance<T>(k));
  }
}

TYPED_TEST(Products, GemmCarriesNanOfItsInputs) {
  using T = TypeParam;
  auto a = Matrix<T>::random(9, 9, 1);
  a(4, 2) = not_a_number<T>();
  const auto b = Matrix<T>::random(9, 9, 2);
  Matrix<T> c(9, 9);
  gemm(Op::none, Op::none, T(1), a.input(), b.input(), T(0), c.tile());
  for (int j = 0; j < 9; ++j) {
    EXPECT_TRUE(std::isnan(std::real(c(4, j))));
    EXPECT_FALSE(std::isnan(std::real(c(3, j))));
  }
}

TYPED_TEST(Products, GemmOfEmptyTiles) {
  using T = TypeParam;
  const KernelTile<T> nothing;
  gemm(Op::none, Op::none, T(1), nothing, nothing, T(0), nothing);
  auto c = Matrix<T>::random(3, 2, 1);
  const auto before = c;
  gemm(Op::none, Op::none, T(1), KernelTile<T>{nullptr, 3, 0, 3}, KernelTile<T>{nullptr, 0, 2, 1},
       T(1), c.tile());
  expect_same(c, before);
  gemm(Op::none, Op::none, T(1), KernelTile<T>{nullptr, 3, 0, 3}, KernelTile<T>{nullptr, 0, 2, 1},
       T(0), c.tile());
  expect_same(c, Matrix<T>(3, 2));
}

TYPED_TEST(Products, GemmRefusesShapesThatDisagree) {
  using T = TypeParam;
  Matrix<T> a(3, 4);
  Matrix<T> b(5, 2);
  Matrix<T> c(3, 2);
  EXPECT_THROW(gemm(Op::none, Op::none, T(1), a.input(), b.input(), T(0), c.tile()), Error);
}

TYPED_TEST(Products, GemmDependsOnNeitherLeadingDimensionNorAddress) {
  using T = TypeParam;
  for (const int margin : {0, 1, 5, 64}) {
    const auto a = Matrix<T>::random(37, 29, 1, margin);
    const auto b = Matrix<T>::random(29, 41, 2, margin + 1);
    auto c = Matrix<T>::random(37, 41, 3, margin + 2);
    const auto a0 = Matrix<T>::random(37, 29, 1, 0);
    const auto b0 = Matrix<T>::random(29, 41, 2, 0);
    auto c0 = Matrix<T>::random(37, 41, 3, 0);
    gemm(Op::none, Op::none, T(-1), a.input(), b.input(), T(1), c.tile());
    gemm(Op::none, Op::none, T(-1), a0.input(), b0.input(), T(1), c0.tile());
    expect_same(c, c0);
  }
}

/// What a rank-k update of one triangle gives: the other as it was.
template <class T>
Matrix<T> triangle_updated(Uplo uplo, const Matrix<T>& all, const Matrix<T>& before) {
  auto result = before;
  for (int j = 0; j < all.cols(); ++j)
    for (int i = 0; i < all.rows(); ++i)
      if (in_triangle(uplo, i, j)) result(i, j) = all(i, j);
  return result;
}

TYPED_TEST(Products, SyrkUpdatesOneTriangle) {
  using T = TypeParam;
  for (const Uplo uplo : triangles)
    for (const Op op : {Op::none, Op::transpose})
      for (const int n : {1, 6, 45})
        for (const int k : {0, 1, 11, 50})
          for (const T beta : {T(0), T(1), T(-0.5)}) {
            const auto a = operand<T>(op, n, k, 4);
            auto c = Matrix<T>::random(n, n, 5);
            const auto x = applied(op, a);
            const auto all = combined(T(2), product(x, applied(Op::transpose, x)), beta, c);
            const auto expected = triangle_updated(uplo, all, c);
            syrk(uplo, op, T(2), a.input(), beta, c.tile());
            expect_near(c, expected, 2 * tolerance<T>(k));
          }
}

TYPED_TEST(Products, HerkUpdatesOneTriangleAndMakesTheDiagonalReal) {
  using T = TypeParam;
  for (const Uplo uplo : triangles)
    for (const Op op : {Op::none, Op::conjugate})
      for (const int n : {1, 6, 45})
        for (const int k : {0, 1, 11, 50})
          for (const double beta : {0.0, 1.0, -0.5}) {
            const auto a = operand<T>(op, n, k, 4);
            auto c = Matrix<T>::random(n, n, 5);
            const auto x = applied(op, a);
            auto all = combined(T(-1), product(x, applied(Op::conjugate, x)), T(Real<T>(beta)), c);
            for (int i = 0; i < n; ++i) all(i, i) = std::real(all(i, i));
            const auto expected = triangle_updated(uplo, all, c);
            herk(uplo, op, -1, a.input(), beta, c.tile());
            expect_near(c, expected, tolerance<T>(k));
            for (int i = 0; i < n; ++i) EXPECT_EQ(std::imag(c(i, i)), 0);
          }
}

TYPED_TEST(Products, RankUpdatesWithBetaZeroIgnoreNanInC) {
  using T = TypeParam;
  const auto a = Matrix<T>::random(21, 8, 4);
  for (const Uplo uplo : triangles) {
    Matrix<T> c(21, 21);
    set(not_a_number<T>(), not_a_number<T>(), c.tile());
    auto d = c;
    syrk(uplo, Op::none, T(1), a.input(), T(0), c.tile());
    herk(uplo, Op::none, 1, a.input(), 0, d.tile());
    for (int j = 0; j < 21; ++j)
      for (int i = 0; i < 21; ++i) {
        EXPECT_EQ(std::isnan(std::real(c(i, j))), !in_triangle(uplo, i, j));
        EXPECT_EQ(std::isnan(std::real(d(i, j))), !in_triangle(uplo, i, j));
      }
  }
}

TYPED_TEST(Products, RankUpdatesRefuseTheOtherOp) {
  using T = TypeParam;
  Matrix<T> a(4, 4);
  Matrix<T> c(4, 4);
  if (complex_type<T>) {
    EXPECT_THROW(syrk(Uplo::lower, Op::conjugate, T(1), a.input(), T(0), c.tile()), Error);
    EXPECT_THROW(herk(Uplo::lower, Op::transpose, 1, a.input(), 0, c.tile()), Error);
  } else {
    EXPECT_NO_THROW(syrk(Uplo::lower, Op::conjugate, T(1), a.input(), T(0), c.tile()));
    EXPECT_NO_THROW(herk(Uplo::lower, Op::transpose, 1, a.input(), 0, c.tile()));
  }
  Matrix<T> small(3, 3);
  EXPECT_THROW(syrk(Uplo::lower, Op::none, T(1), a.input(), T(0), small.tile()), Error);
  EXPECT_THROW(herk(Uplo::lower, Op::none, 1, a.input(), 0, small.tile()), Error);
}

}  // namespace
}  // namespace quadriga::kernels
