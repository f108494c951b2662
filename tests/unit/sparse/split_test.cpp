// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/split_test.cpp: products split by columns: elements, results, bits, refusals.
#include <cmath>

#include "sparse/column_split.h"
#include "unit/sparse/losses.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

/// Hermitian with a dominant diagonal and columns anywhere: nearly all rows are border.
template <class T>
OwnedCsr<T> scattered(std::int64_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<std::pair<std::int64_t, T>>> rows(static_cast<std::size_t>(n));
  for (std::int64_t row = 0; row < n; ++row)
    for (int j = 0; j < 4; ++j) {
      const auto column = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
      if (column == row) continue;
      const T value = random_value<T>(random);
      rows[row].emplace_back(column, value);
      if constexpr (std::is_floating_point_v<T>)
        rows[column].emplace_back(row, value);
      else
        rows[column].emplace_back(row, std::conj(value));
    }
  OwnedCsr<T> a;
  a.cols = n;
  for (std::int64_t row = 0; row < n; ++row) {
    a.add(row, T(24));
    for (const auto& [column, value] : rows[row]) a.add(column, value);
    a.end_row();
  }
  return a;
}

SolverOptions by_columns() {
  SolverOptions options;
  options.split = Split::columns;
  options.precondition = Precondition::jacobi;
  return options;
}

template <class T>
std::vector<T> solve(Engine& engine, const OwnedCsr<T>& a, const std::vector<T>& b,
                     const SolverOptions& options, double rtol) {
  std::vector<T> x(b.size());
  SolveOptions wanted;
  wanted.rtol = rtol;
  const SolveResult result = Solver(engine, a.view(), options).cg(b.data(), x.data(), 1, wanted);
  EXPECT_EQ(result.reason, StopReason::converged);
  EXPECT_LE(residual(a, x, b), 1.01 * rtol * norm(b));
  return x;
}

TEST(Split, SheetsHaveEachElementOnceInItsOrder) {
  const auto a = random_matrix<double>(300, 5);
  const std::vector<std::int64_t> cuts{0, 64, 128, 300};
  const IndexRange rows{64, 128};
  std::vector<std::int64_t> seen(a.columns.size());
  for (std::size_t part = 0; part + 1 < cuts.size(); ++part) {
    const IndexRange columns{cuts[part], cuts[part + 1]};
    const ColumnsOfRows found(a.view(), rows, 8, columns, {});
    const CsrView view = found.view();
    const auto* const offsets = static_cast<const std::int64_t*>(view.offsets);
    const auto* const from = static_cast<const std::int64_t*>(view.columns);
    const auto* const values = static_cast<const double*>(view.values);
    EXPECT_EQ(offsets[rows.first], 0);
    EXPECT_EQ(offsets[a.rows], view.elements);
    for (std::int64_t row = rows.first; row < rows.last; ++row) {
      std::int64_t at = offsets[row];
      for (auto i = a.offsets[row]; i < a.offsets[row + 1]; ++i) {
        if (a.columns[i] < columns.first || a.columns[i] >= columns.last) continue;
        ASSERT_LT(at, offsets[row + 1]);
        EXPECT_EQ(from[at], a.columns[i]);
        EXPECT_EQ(values[at++], a.values[i]);
        ++seen[i];
      }
      EXPECT_EQ(at, offsets[row + 1]);
    }
  }
  for (auto i = a.offsets[rows.first]; i < a.offsets[rows.last]; ++i) EXPECT_EQ(seen[i], 1);
}

template <class T>
class SplitTypes : public ::testing::Test {};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(SplitTypes, Types);

TYPED_TEST(SplitTypes, ProductsAndSolvesAreThoseOfRows) {
  using T = TypeParam;
  const auto a = scattered<T>(900, 3);
  const auto x = random_vector<T>(a.rows * 5, 4);
  const auto b = random_vector<T>(a.rows, 7);
  const bool is_single = sizeof(T) == sizeof(float) * (std::is_floating_point_v<T> ? 1 : 2);
  const double near = is_single ? 1e-4 : 1e-12;
  const std::vector<T> expected = a.times(x, 5);
  for (const char* const devices : {"emulated:3", "emulated:2,peer=4GB/s", "cpu:2"})
    for (const Format format : {Format::csr, Format::sell, Format::blocks}) {
      Engine engine({devices});
      SolverOptions options = by_columns();
      options.format = format;
      const Solver solver(engine, a.view(), options);
      EXPECT_EQ(solver.plan().split, Split::columns);
      std::vector<T> y(x.size());
      solver.multiply(x.data(), y.data(), 5);
      for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(std::abs(y[i] - expected[i]), 0, near);
      solve(engine, a, b, options, is_single ? 1e-5 : 1e-10);
    }
}

TEST(Split, BitsAreThoseOfTheSameParts) {
  const auto a = scattered<double>(1100, 11);
  const auto b = random_vector<double>(a.rows, 12);
  for (const CgMethod method :
       {CgMethod::classic, CgMethod::single_reduction, CgMethod::pipelined}) {
    std::vector<double> expected;
    for (const char* const devices : {"emulated:3", "emulated:3,peer=4GB/s", "emulated:1"})
      for (const Exchange exchange : {Exchange::halo, Exchange::whole})
        for (const CopyRoute route : {CopyRoute::direct, CopyRoute::host})
          for (const bool overlap : {false, true}) {
            Engine engine({devices});
            SolverOptions options = by_columns();
            options.parts = 3;
            options.method = method;
            options.exchange = exchange;
            options.route = route;
            options.overlap = overlap;
            const std::vector<double> x = solve(engine, a, b, options, 1e-9);
            if (expected.empty()) expected = x;
            ASSERT_EQ(x, expected) << devices << " " << overlap << " " << name(method);
          }
  }
}

// A sum of own columns and the rest isn't the row's.
TEST(Split, BitsDifferFromThoseOfWholeRows) {
  const auto a = scattered<double>(1100, 11);
  const auto x = random_vector<double>(a.rows, 12);
  Engine engine({"emulated:2"});
  SolverOptions options = by_columns();
  std::vector<double> by_rows(x.size()), apart(x.size());
  Solver(engine, a.view(), options).multiply(x.data(), apart.data());
  options.split = Split::rows;
  Solver(engine, a.view(), options).multiply(x.data(), by_rows.data());
  EXPECT_NE(apart, by_rows);
}

TEST(Split, OnePartIsWhole) {
  const auto a = scattered<double>(500, 2);
  const auto b = random_vector<double>(a.rows, 3);
  Engine engine({"emulated:1"});
  SolverOptions options = by_columns();
  const std::vector<double> x = solve(engine, a, b, options, 1e-9);
  options.split = Split::rows;
  EXPECT_EQ(x, solve(engine, a, b, options, 1e-9));
}

TEST(Split, TakesNewValuesAndNoNewPlaces) {
  const auto a = scattered<double>(700, 21);
  auto twice = a;
  for (double& each : twice.values) each *= 2;
  auto moved = a;
  std::int64_t last = moved.offsets[1] - 1;
  while (moved.columns[last] >= 350) --last;
  moved.columns[last] = 690;
  const auto x = random_vector<double>(a.rows, 22);
  Engine engine({"emulated:2"});
  const Solver solver(engine, a.view(), by_columns());
  std::vector<double> y(x.size()), again(x.size());
  solver.multiply(x.data(), y.data());
  EXPECT_THROW(solver.update(moved.view()), Error);
  solver.multiply(x.data(), again.data());
  EXPECT_EQ(y, again);
  solver.update(twice.view());
  solver.multiply(x.data(), again.data());
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(again[i], 2 * y[i]);
}

TEST(Split, RefusesWhatNeedsWholeRows) {
  const auto a = scattered<double>(300, 31);
  Engine engine({"emulated:2"});
  SolverOptions options = by_columns();
  options.precondition = Precondition::chebyshev;
  EXPECT_THROW(Solver(engine, a.view(), options), Error);
  options = by_columns();
  options.recorded = true;
  EXPECT_THROW(Solver(engine, a.view(), options), Error);
}

using SplitLost = Losses;

TEST_F(SplitLost, BeginsAgainAfterALoss) {
  const auto a = scattered<double>(900, 41);
  const auto b = random_vector<double>(a.rows, 42);
  Engine whole({"emulated:3"});
  SolverOptions options = by_columns();
  options.parts = 3;
  const std::vector<double> expected = solve(whole, a, b, options, 1e-9);
  for (const std::uint64_t after : {20, 40, 100}) {
    Engine engine = losing(3, {{1, after}});
    EXPECT_EQ(solve(engine, a, b, options, 1e-9), expected);
    expect_lost(1);
  }
}

/// Two devices of 100 GB/s, 5 GB/s between them.
Machine slow_links() {
  Machine machine = Machine::parse("emulated:2,h2d=5GB/s,d2h=5GB/s,peer=5GB/s");
  machine.kernels["bytes"]["emulated"][1000] = 1e9 / 100e9;
  machine.kernels["flops"]["emulated"][1000] = 1e9 / 5e12;
  return machine;
}

TEST(Split, IsPredictedAndReachedWhereNearlyAllRowsAreBorder) {
  const auto a = scattered<double>(200000, 51);
  EngineOptions machine;
  machine.machine = slow_links();
  machine.virtual_clock = true;
  Engine engine(machine);
  SolverOptions options = by_columns();
  options.parts = 2;
  options.overlap = true;
  double reached[2], predicted[2];
  for (const Split split : {Split::rows, Split::columns}) {
    options.split = split;
    const Solver solver(engine, a.view(), options);
    const auto at = static_cast<std::size_t>(split);
    predicted[at] = solver.plan().models[0].reachable_seconds;
    reached[at] = solver.measure_product(10, 1, ProductMode::overlapped);
    EXPECT_NEAR(reached[at], predicted[at], 0.1 * predicted[at]);
    EXPECT_GE(predicted[at] * 1.0001, solver.plan().models[0].overlapped_seconds());
  }
  EXPECT_LT(predicted[1], 0.9 * predicted[0]);
  EXPECT_LT(reached[1], 0.9 * reached[0]);
}

}  // namespace
}  // namespace quadriga::sparse::testing
