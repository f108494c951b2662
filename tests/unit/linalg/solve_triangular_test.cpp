// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/solve_triangular_test.cpp: triangular systems: the product with the solution is
// B.
#include "unit/linalg/matrices.h"

namespace quadriga::linalg::testing {
namespace {

struct Case {
  DType dtype = DType::float64;
  Uplo uplo = Uplo::lower;
  Op op = Op::none;
  bool unit = false;
  Lay lay_a = Lay::columns;
  Lay lay_b = Lay::columns;
  std::int64_t order = 37;
  std::int64_t columns = 21;
};

/// The triangle as it is meant: zero elsewhere, perhaps ones on the diagonal.
Array meant(const Array& a, Uplo uplo, bool unit) {
  Array triangle = a;
  for (std::int64_t j = 0; j < a.cols(); ++j)
    for (std::int64_t i = 0; i < a.rows(); ++i) {
      if (!in_triangle(uplo, i, j)) triangle.set(i, j, 0);
      if (i == j && unit) triangle.set(i, j, 1);
    }
  return triangle;
}

Array triangle_matrix(std::int64_t order, DType dtype, Lay lay, Uplo uplo, bool unit) {
  Array a = random_matrix(order, order, dtype, lay, 3);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t j = 0; j < order; ++j)
    for (std::int64_t i = 0; i < order; ++i) {
      if (!in_triangle(uplo, i, j))
        a.set(i, j, nan);
      else if (i == j)
        a.set(i, j, unit ? Complex(nan) : a.get(i, j) + 4.0);
      else
        a.set(i, j, a.get(i, j) * 0.25);
    }
  return a;
}

void check(Engine& engine, const Case& given) {
  const auto [dtype, uplo, op, unit, lay_a, lay_b, order, columns] = given;
  const Array a = triangle_matrix(order, dtype, lay_a, uplo, unit);
  const Array before = random_matrix(order, columns, dtype, lay_b, 4);
  Array b = before;
  solve_triangular(engine, a.view(), uplo, op, unit, b.view(), {.tile = 16});
  const Array triangle = meant(a, uplo, unit);
  double largest = 1;
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < order; ++i) largest = std::max(largest, std::abs(b.get(i, j)));
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < order; ++i)
      ASSERT_LE(std::abs(product(triangle, op, b, Op::none, i, j) - before.get(i, j)),
                100 * epsilon(dtype) * static_cast<double>(order) * largest)
          << i << ", " << j << " " << name(dtype) << static_cast<int>(uplo) << static_cast<int>(op)
          << static_cast<int>(lay_a) << static_cast<int>(lay_b);
}

void check_all(Engine& engine, DType dtype, Lay lay_a, Lay lay_b) {
  for (const Uplo uplo : {Uplo::lower, Uplo::upper})
    for (const Op op : {Op::none, Op::transpose, Op::conjugate})
      for (const bool unit : {false, true}) check(engine, {dtype, uplo, op, unit, lay_a, lay_b});
}

TEST(SolveTriangular, TypesAndLayouts) {
  const auto engine = make_engine("cpu:2");
  for (const DType dtype : all_types)
    for (const Lay lay_a : all_layouts)
      for (const Lay lay_b : all_layouts) check_all(*engine, dtype, lay_a, lay_b);
}

TEST(SolveTriangular, DevicesOfThreeTiles) {
  for (const char* const devices :
       {"emulated:2,memory=6KiB", "virtual:emulated:3,memory=6KiB,peer=off"}) {
    const auto engine = make_engine(devices);
    check_all(*engine, DType::float64, Lay::columns, Lay::rows);
    check_all(*engine, DType::float64, Lay::every_other, Lay::columns);
  }
}

TEST(SolveTriangular, SizesAroundTheTile) {
  const auto engine = make_engine("cpu:2");
  for (const std::int64_t order : {0, 1, 16, 17})
    for (const std::int64_t columns : {0, 1, 16, 33})
      for (const Lay lay : {Lay::columns, Lay::rows})
        check(*engine, {.op = Op::transpose, .lay_b = lay, .order = order, .columns = columns});
}

TEST(SolveTriangular, NamesTheFirstZeroAndLeavesBAlone) {
  const auto engine = make_engine("cpu:2");
  Array a = triangle_matrix(40, DType::float64, Lay::columns, Uplo::lower, false);
  a.set(17, 17, 0);
  a.set(30, 30, 0);
  Array b = random_matrix(40, 2, DType::float64, Lay::columns, 1);
  const Array before = b;
  try {
    solve_triangular(*engine, a.view(), Uplo::lower, Op::none, false, b.view(), {.tile = 16});
    FAIL() << "no error";
  } catch (const SingularMatrix& error) {
    EXPECT_EQ(error.index(), 17);
  }
  EXPECT_TRUE(b.same_bytes(before));
  EXPECT_NO_THROW(
      solve_triangular(*engine, a.view(), Uplo::lower, Op::none, true, b.view(), {.tile = 16}));
}

}  // namespace
}  // namespace quadriga::linalg::testing
