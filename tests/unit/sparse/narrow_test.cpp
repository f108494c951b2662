// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/narrow_test.cpp: slices whose columns take 16 bits, and those where they can't.
#include "sparse/kernels/part_kernels.h"
#include "sparse/pack.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

constexpr std::int64_t order = 70000;
constexpr std::int64_t reach = 1 << 16;

/// A few elements beside the diagonal; one more in the first column of one row, and, if it is far,
/// in its neighbour the last column that 16 bits don't reach from there.
OwnedCsr<double> band(bool is_far) {
  OwnedCsr<double> a;
  a.cols = order;
  for (std::int64_t row = 0; row < order; ++row) {
    const double value = 1 + static_cast<double>(row % 7);
    if (row == 40) a.add(0, 3);
    if (row == 41) a.add(is_far ? reach : reach - 1, 5);
    for (const std::int64_t column : {row - 1, row, row + 1})
      if (column >= 0 && column < order) a.add(column, column == row ? 8 * value : -1);
    a.end_row();
  }
  return a;
}

PartShape shape_of_whole(const OwnedCsr<double>& a, std::int64_t height) {
  const Halo halo = find_halo(a.view(), 0, a.rows, {512});
  RowPieces pieces;
  return shape_of(a.view(), {0, a.rows, &halo, {}, {0, a.rows}}, {Format::sell, 1, 512, height, 0},
                  pieces);
}

TEST(NarrowColumns, AreUsedWhereAllSlicesAllow) {
  for (const bool is_far : {false, true}) {
    const auto a = band(is_far);
    for (const std::int64_t height : {8, 32}) {
      const PartShape shape = shape_of_whole(a, height);
      EXPECT_EQ(shape.narrow, !is_far);
      const std::int64_t column_bytes = is_far ? 4 : 2;
      EXPECT_EQ(shape.values - shape.columns, aligned(shape.elements * column_bytes));
    }
  }
}

TEST(NarrowColumns, GiveTheBitsOfWideOnes) {
  for (const bool is_far : {false, true}) {
    const auto a = band(is_far);
    const auto x = random_vector<double>(order * 5, 3);
    const auto expected = a.times(x, 5);
    for (const char* const devices : {"emulated:1", "emulated:3", "cpu:2"}) {
      Engine engine({devices});
      std::vector<double> y(x.size());
      Solver(engine, a.view(), {Format::sell}).multiply(x.data(), y.data(), 5);
      EXPECT_TRUE(same_bits(y, expected));
    }
  }
}

TEST(NarrowColumns, TakeNewValuesAndRefuseOtherPlaces) {
  auto a = band(false);
  const auto x = random_vector<double>(order, 3);
  Engine engine({"emulated:2"});
  const Solver solver(engine, a.view(), {Format::sell});
  for (double& each : a.values) each *= 2;
  solver.update(a.view());
  std::vector<double> y(x.size());
  solver.multiply(x.data(), y.data());
  EXPECT_TRUE(same_bits(y, a.times(x, 1)));
  a.columns[static_cast<std::size_t>(a.offsets[50000])] += 5;
  EXPECT_THROW(solver.update(a.view()), Error);
}

}  // namespace
}  // namespace quadriga::sparse::testing
