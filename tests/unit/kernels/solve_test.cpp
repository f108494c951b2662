// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/kernels/solve_test.cpp: trsm and potrf by multiplying back, all types, sides and
// triangles.
#include "linalg/kernels/codelets.h"
#include "unit/kernels/matrices.h"

#include <quadriga/error.h>

namespace quadriga::kernels {
namespace {

constexpr Op ops[] = {Op::none, Op::transpose, Op::conjugate};
constexpr Uplo triangles[] = {Uplo::lower, Uplo::upper};

template <class T>
class Solves : public ::testing::Test {};
TYPED_TEST_SUITE(Solves, Types);

/// A triangle that is easy to solve with; NaN in the other, which mustn't be read.
template <class T>
Matrix<T> triangle(Uplo uplo, Diag diag, int order) {
  auto a = Matrix<T>::random(order, order, 7);
  for (int j = 0; j < order; ++j)
    for (int i = 0; i < order; ++i) {
      if (!in_triangle(uplo, i, j)) a(i, j) = not_a_number<T>();
      if (i != j) a(i, j) /= static_cast<Real<T>>(order);
      if (i == j) a(i, j) = diag == Diag::unit ? not_a_number<T>() : a(i, j) + T(2);
    }
  return a;
}

template <class T>
void check_trsm(Side side, Uplo uplo, Op op, Diag diag, int m, int n) {
  const auto a = triangle<T>(uplo, diag, side == Side::left ? m : n);
  const auto b = Matrix<T>::random(m, n, 8);
  auto x = b;
  trsm(side, uplo, op, diag, T(2), a.input(), x.tile());
  ASSERT_TRUE(x.margin_is_intact());
  const auto factor = applied(op, triangle_of(uplo, diag, a));
  auto expected = b;
  scale(T(2), expected.tile());
  expect_near(side == Side::left ? product(factor, x) : product(x, factor), expected,
              4 * tolerance<T>(factor.rows()));
}

TYPED_TEST(Solves, TrsmForAllSidesTrianglesAndOps) {
  const int sizes[][2] = {{1, 1}, {7, 5}, {33, 20}, {20, 65}, {70, 1}};
  for (const Side side : {Side::left, Side::right})
    for (const Uplo uplo : triangles)
      for (const Op op : ops)
        for (const Diag diag : {Diag::non_unit, Diag::unit})
          for (const auto& [m, n] : sizes) check_trsm<TypeParam>(side, uplo, op, diag, m, n);
}

TYPED_TEST(Solves, TrsmOfEmptyTilesAndWithAlphaZero) {
  using T = TypeParam;
  const auto a = triangle<T>(Uplo::lower, Diag::non_unit, 4);
  trsm(Side::left, Uplo::lower, Op::none, Diag::non_unit, T(1), a.input(),
       KernelTile<T>{nullptr, 4, 0, 4});
  trsm(Side::left, Uplo::lower, Op::none, Diag::non_unit, T(1), KernelTile<T>{},
       KernelTile<T>{nullptr, 0, 3, 1});
  Matrix<T> b(4, 3);
  set(not_a_number<T>(), not_a_number<T>(), b.tile());
  trsm(Side::left, Uplo::lower, Op::none, Diag::non_unit, T(0), a.input(), b.tile());
  expect_same(b, Matrix<T>(4, 3));
}

TYPED_TEST(Solves, TrsmRefusesShapesThatDisagree) {
  using T = TypeParam;
  Matrix<T> a(4, 4);
  Matrix<T> b(4, 5);
  EXPECT_THROW(trsm(Side::right, Uplo::lower, Op::none, Diag::non_unit, T(1), a.input(), b.tile()),
               Error);
}

template <class T>
void check_potrf(Uplo uplo, int order) {
  const auto whole = Matrix<T>::positive(order, 9);
  auto a = whole;
  const T untouched(77);
  for (int j = 0; j < order; ++j)
    for (int i = 0; i < order; ++i)
      if (!in_triangle(uplo, i, j)) a(i, j) = untouched;
  ASSERT_EQ(potrf(uplo, a.tile()), 0);
  const auto factor = triangle_of(uplo, Diag::non_unit, a);
  const auto other = applied(Op::conjugate, factor);
  expect_near(uplo == Uplo::lower ? product(factor, other) : product(other, factor), whole,
              order * tolerance<T>(order));
  for (int j = 0; j < order; ++j)
    for (int i = 0; i < order; ++i)
      if (!in_triangle(uplo, i, j)) {
        ASSERT_EQ(a(i, j), untouched);
      }
}

TYPED_TEST(Solves, PotrfLeavesTheOtherTriangle) {
  for (const Uplo uplo : triangles)
    for (const int order : {1, 2, 5, 31, 64, 97, 150}) check_potrf<TypeParam>(uplo, order);
  EXPECT_EQ(potrf(Uplo::lower, KernelTile<TypeParam>{}), 0);
}

TYPED_TEST(Solves, PotrfNamesTheMinor) {
  using T = TypeParam;
  const int order = 90;
  for (const Uplo uplo : triangles)
    for (const int bad : {0, 1, 30, 63, 64, 89})
      for (const T value : {T(-1), T(0), not_a_number<T>()}) {
        auto a = Matrix<T>::positive(order, 9);
        a(bad, bad) = value;
        EXPECT_EQ(potrf(uplo, a.tile()), bad + 1);
      }
}

TYPED_TEST(Solves, PotrfFindsNanOffTheDiagonal) {
  using T = TypeParam;
  auto a = Matrix<T>::positive(40, 9);
  a(33, 4) = not_a_number<T>();
  EXPECT_EQ(potrf(Uplo::lower, a.tile()), 34);
}

TYPED_TEST(Solves, PotrfRefusesWhatIsNotSquare) {
  Matrix<TypeParam> a(4, 3);
  EXPECT_THROW(potrf(Uplo::lower, a.tile()), Error);
}

TYPED_TEST(Solves, ResultsDependOnNeitherLeadingDimensionNorAddress) {
  using T = TypeParam;
  for (const int margin : {1, 6, 61}) {
    auto a = Matrix<T>::positive(101, 9, margin);
    auto a0 = Matrix<T>::positive(101, 9, 0);
    ASSERT_EQ(potrf(Uplo::lower, a.tile()), 0);
    ASSERT_EQ(potrf(Uplo::lower, a0.tile()), 0);
    expect_same(a, a0);
    auto b = Matrix<T>::random(55, 101, 3, margin + 3);
    auto b0 = Matrix<T>::random(55, 101, 3, 0);
    trsm(Side::right, Uplo::lower, Op::conjugate, Diag::non_unit, T(1), a.input(), b.tile());
    trsm(Side::right, Uplo::lower, Op::conjugate, Diag::non_unit, T(1), a0.input(), b0.tile());
    expect_same(b, b0);
  }
}

}  // namespace
}  // namespace quadriga::kernels
