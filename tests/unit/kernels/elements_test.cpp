// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/kernels/elements_test.cpp: copy, scale, set, mirror and random elements, in every
// region.
#include "unit/kernels/matrices.h"

#include <quadriga/error.h>

#include <set>

namespace quadriga::kernels {
namespace {

constexpr Op ops[] = {Op::none, Op::transpose, Op::conjugate};
constexpr Part parts[] = {Part::all, Part::lower, Part::upper, Part::strict_lower,
                          Part::strict_upper};

template <class T>
class Elements : public ::testing::Test {};
TYPED_TEST_SUITE(Elements, Types);

bool inside(const TileRegion& region, int i, int j) {
  const std::int64_t below = i + region.diagonal - j;
  switch (region.part) {
    case Part::all:
      return true;
    case Part::lower:
      return below >= 0;
    case Part::strict_lower:
      return below > 0;
    case Part::upper:
      return below <= 0;
    case Part::strict_upper:
      return below < 0;
  }
  return false;
}

template <class Check>
void for_all_regions(Check check) {
  for (const Part part : parts)
    for (const std::int64_t diagonal : {0, 3, -2, 100, -100}) check(TileRegion{part, diagonal});
}

TYPED_TEST(Elements, CopyWritesARegionOfTheTarget) {
  using T = TypeParam;
  for (const Op op : ops)
    for_all_regions([&](TileRegion region) {
      const auto a = op == Op::none ? Matrix<T>::random(37, 21, 1) : Matrix<T>::random(21, 37, 1);
      const auto source = applied(op, a);
      auto c = Matrix<T>::random(37, 21, 2);
      auto expected = c;
      for (int j = 0; j < 21; ++j)
        for (int i = 0; i < 37; ++i)
          if (inside(region, i, j)) expected(i, j) = source(i, j);
      copy(op, a.input(), c.tile(), region);
      expect_same(c, expected);
    });
}

TYPED_TEST(Elements, ScaleAndAxpbyInARegion) {
  using T = TypeParam;
  for (const Op op : ops)
    for (const T beta : {T(0), T(1), T(-2)})
      for_all_regions([&](TileRegion region) {
        const auto a = op == Op::none ? Matrix<T>::random(18, 35, 1) : Matrix<T>::random(35, 18, 1);
        const auto source = applied(op, a);
        auto c = Matrix<T>::random(18, 35, 2);
        auto d = c;
        auto expected = c;
        auto scaled = c;
        for (int j = 0; j < 35; ++j)
          for (int i = 0; i < 18; ++i) {
            if (!inside(region, i, j)) continue;
            expected(i, j) = T(0.5) * source(i, j) + beta * c(i, j);
            scaled(i, j) = beta * c(i, j);
          }
        axpby(op, T(0.5), a.input(), beta, c.tile(), region);
        expect_near(c, expected, tolerance<T>(1));
        scale(beta, d.tile(), region);
        expect_same(d, scaled);
      });
}

TYPED_TEST(Elements, ZeroFactorsDoNotReadNan) {
  using T = TypeParam;
  const auto a = Matrix<T>::random(5, 5, 1);
  Matrix<T> c(5, 5);
  set(not_a_number<T>(), not_a_number<T>(), c.tile());
  auto d = c;
  axpby(Op::none, T(1), a.input(), T(0), c.tile());
  expect_same(c, a);
  scale(T(0), d.tile());
  expect_same(d, Matrix<T>(5, 5));
}

TYPED_TEST(Elements, SetAndAddDiagonal) {
  using T = TypeParam;
  for_all_regions([](TileRegion region) {
    auto c = Matrix<T>::random(9, 14, 2);
    auto expected = c;
    for (int j = 0; j < 14; ++j)
      for (int i = 0; i < 9; ++i) {
        const bool crossing = i + region.diagonal == j;
        if (inside(region, i, j)) expected(i, j) = crossing ? T(5) : T(3);
        if (crossing) expected(i, j) += T(2);
      }
    set(T(3), T(5), c.tile(), region);
    add_diagonal(T(2), c.tile(), region.diagonal);
    expect_same(c, expected);
  });
}

TYPED_TEST(Elements, MirrorFillsTheOtherTriangle) {
  using T = TypeParam;
  for (const Uplo stored : {Uplo::lower, Uplo::upper})
    for (const Op op : {Op::transpose, Op::conjugate}) {
      const auto a = Matrix<T>::random(43, 43, 1);
      auto c = a;
      mirror(stored, op, c.tile());
      for (int j = 0; j < 43; ++j)
        for (int i = 0; i < 43; ++i) {
          T expected = in_triangle(stored, i, j) ? a(i, j) : a(j, i);
          if (op == Op::conjugate && !in_triangle(stored, i, j)) expected = conjugated(expected);
          if (op == Op::conjugate && i == j) expected = std::real(expected);
          ASSERT_EQ(c(i, j), expected);
        }
      EXPECT_TRUE(c.margin_is_intact());
    }
  Matrix<T> wide(2, 3);
  EXPECT_THROW(mirror(Uplo::lower, Op::conjugate, wide.tile()), Error);
  EXPECT_THROW(mirror(Uplo::lower, Op::none, Matrix<T>(2, 2).tile()), Error);
}

TYPED_TEST(Elements, EmptyTilesAreLeftAlone) {
  using T = TypeParam;
  for (const KernelTile<T> nothing :
       {KernelTile<T>{}, KernelTile<T>{nullptr, 3, 0, 3}, KernelTile<T>{nullptr, 0, 3, 1}}) {
    copy(Op::none, nothing, nothing);
    scale(T(2), nothing);
    set(T(1), T(1), nothing);
    add_diagonal(T(1), nothing);
    fill_random(RandomMatrix{}, nothing);
  }
  mirror(Uplo::lower, Op::conjugate, KernelTile<T>{});
}

TYPED_TEST(Elements, RandomElementsDoNotDependOnTheTiling) {
  using T = TypeParam;
  for (const bool hermitian : {false, true}) {
    const RandomMatrix random{.seed = 11, .on_diagonal = 60, .hermitian = hermitian};
    Matrix<T> whole(60, 60);
    fill_random(random, whole.tile());
    Matrix<T> tiled(60, 60);
    for (int col = 0; col < 60; col += 17)
      for (int row = 0; row < 60; row += 23) {
        auto placed = random;
        placed.first_row = row;
        placed.first_col = col;
        const KernelTile<T> all = tiled.tile();
        fill_random(placed, KernelTile<T>{&all(row, col), std::min(23, 60 - row),
                                          std::min(17, 60 - col), all.ld});
      }
    expect_same(tiled, whole);
    if (hermitian) expect_same(applied(Op::conjugate, whole), whole);
  }
}

TYPED_TEST(Elements, RandomElementsAreUniformAndUseEveryBit) {
  using T = TypeParam;
  const auto a = Matrix<T>::random(200, 200, 5, 0);
  const auto b = Matrix<T>::random(200, 200, 6, 0);
  double sum = 0;
  double squares = 0;
  std::set<double> different;
  int odd = 0;
  for (int j = 0; j < 200; ++j)
    for (int i = 0; i < 200; ++i) {
      const double value = std::real(a(i, j));
      ASSERT_GE(value, -0.5);
      ASSERT_LT(value, 0.5);
      ASSERT_NE(a(i, j), b(i, j));
      sum += value;
      squares += value * value;
      different.insert(value);
      const double digits = (value + 0.5) * (sizeof(Real<T>) == 4 ? 0x1p24 : 0x1p53);
      odd += static_cast<std::int64_t>(digits) % 2 != 0;
    }
  EXPECT_NEAR(sum / 40000, 0, 0.01);
  EXPECT_NEAR(squares / 40000, 1.0 / 12, 0.002);
  EXPECT_GT(different.size(), 39900u);
  EXPECT_NEAR(odd, 20000, 1000);
}

}  // namespace
}  // namespace quadriga::kernels
