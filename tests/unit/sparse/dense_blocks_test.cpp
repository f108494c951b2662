// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/dense_blocks_test.cpp: dense blocks are found, stored and multiplied.
#include "sparse/dense_blocks.h"

#include <utility>

#include "sparse/formats.h"
#include "sparse/kernels/number.h"
#include "sparse/kernels/part_kernels.h"
#include "sparse/pack.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

/// Symmetric and dominated by its diagonal: nodes in a ring with some neighbours each, `size`
/// unknowns a node. Rows in descending order where `turned`. `lacking`: so many elements of a
/// hundred, off the diagonal, are not there.
template <class T>
OwnedCsr<T> nodes_matrix(std::int64_t nodes, int size, bool turned = false, int lacking = 0) {
  OwnedCsr<T> a;
  a.cols = nodes * size;
  const auto value = [&](std::int64_t row, std::int64_t column) {
    const auto low = static_cast<std::uint64_t>(std::min(row, column));
    const auto high = static_cast<std::uint64_t>(std::max(row, column));
    return (low * 7919 + high * 104729) % 1000;
  };
  for (std::int64_t row = 0; row < nodes * size; ++row) {
    std::vector<std::int64_t> near;
    for (const std::int64_t step : {0, 1, 2, 17, 31})
      for (const std::int64_t sign : {-1, 1})
        near.push_back((row / size + sign * step + 31 * nodes) % nodes);
    std::ranges::sort(near);
    near.erase(std::ranges::unique(near).begin(), near.end());
    if (turned) std::ranges::reverse(near);
    for (const std::int64_t node : near)
      for (int c = 0; c < size; ++c) {
        const std::int64_t column = node * size + (turned ? size - 1 - c : c);
        const auto drawn = value(row, column);
        if (column != row && static_cast<int>(drawn % 100) < lacking) continue;
        a.add(column, column == row ? T(60) : T(static_cast<float>(drawn) / 1000));
      }
    a.end_row();
  }
  return a;
}

template <class T>
std::vector<T> product(Engine& engine, const CsrView& a, const std::vector<T>& x, std::int64_t k,
                       SolverOptions options) {
  std::vector<T> y(static_cast<std::size_t>(a.rows * k));
  options.format = Format::blocks;
  Solver(engine, a, options).multiply(x.data(), y.data(), k);
  return y;
}

template <class T>
class DenseBlocks : public ::testing::Test {};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(DenseBlocks, Types);

TYPED_TEST(DenseBlocks, GiveProductsOfPlainSumsWithTheSameBitsForAnyCut) {
  using T = TypeParam;
  const bool is_single = sizeof(T) / parts_of<T> == sizeof(float);
  Engine host({"cpu:2"});
  Engine devices({"emulated:3"});
  for (const int size : {2, 3, 4})
    for (const std::int64_t nodes : {1, 5, 64, 700})
      for (const bool turned : {false, true}) {
        const auto a = nodes_matrix<T>(nodes, size, turned, turned ? 20 : 0);
        for (const std::int64_t k : {1, 6}) {
          const auto x = random_vector<T>(a.rows * k, 5);
          const auto expected = a.times(x, k);
          const auto y = product(host, a.view(), x, k, {});
          for (std::size_t i = 0; i < y.size(); ++i)
            ASSERT_NEAR(std::abs(std::complex<double>(y[i] - expected[i])), 0,
                        is_single ? 2e-4 : 1e-12);
          SolverOptions options;
          for (const int parts : {1, 2, 5}) {
            options.parts = parts;
            EXPECT_TRUE(same_bits(y, product(host, a.view(), x, k, options)));
          }
          EXPECT_TRUE(same_bits(y, product(devices, a.view(), x, k, {})));
        }
      }
}

TEST(DenseBlocks, AreCountedWhateverTheOrderOfElements) {
  for (const int size : dense_sizes)
    for (const bool turned : {false, true}) {
      const auto a = nodes_matrix<double>(100, size, turned);
      const auto elements = static_cast<std::int64_t>(a.columns.size());
      EXPECT_EQ(count_dense_blocks(a.view(), size, 0, a.rows, elements), elements / (size * size));
      EXPECT_GT(count_dense_blocks(a.view(), size, 0, a.rows, 50), 50);
      std::vector<std::int64_t> found;
      find_dense_columns(a.view(), size, 50, found);
      EXPECT_EQ(found, (std::vector<std::int64_t>{19, 33, 48, 49, 50, 51, 52, 67, 81}));
    }
}

// Three rows with the same columns, which only look as if they were full blocks.
TEST(DenseBlocks, OfEqualRowsAreCountedByTheirColumns) {
  const std::vector<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> cases{
      {{0, 1, 2, 6, 7, 8}, {0, 2}}, {{1, 2, 3, 6, 7, 8}, {0, 1, 2}},
      {{3, 4, 5, 0, 1, 2}, {0, 1}}, {{0, 1, 2, 0, 1, 2}, {0}},
      {{0, 2, 1, 3, 5, 4}, {0, 1}}, {{0, 1, 2, 3}, {0, 1}},
      {{0, 0, 2, 3, 3, 5}, {0, 1}}, {{}, {}}};
  for (const auto& [columns, expected] : cases) {
    OwnedCsr<double> a;
    a.cols = 9;
    for (int row = 0; row < 3; ++row) {
      for (const std::int64_t each : columns) a.add(each, 1);
      a.end_row();
    }
    std::vector<std::int64_t> found;
    find_dense_columns(a.view(), 3, 0, found);
    EXPECT_EQ(found, expected) << ::testing::PrintToString(columns);
    EXPECT_EQ(count_dense_blocks(a.view(), 3, 0, 3, 100),
              static_cast<std::int64_t>(expected.size()));
  }
}

TEST(DenseBlocks, AreChosenWhereTheyTakeFewerBytes) {
  Engine engine({"cpu:2"});
  for (const int size : dense_sizes) {
    const auto a = nodes_matrix<double>(200, size);
    const ChosenFormat chosen = choose_format(engine, a.view(), Format::automatic);
    EXPECT_EQ(chosen.format, Format::blocks);
    EXPECT_EQ(chosen.dense_rows, size);
    EXPECT_EQ(Solver(engine, a.view()).format(), Format::blocks);
    EXPECT_EQ(Solver(engine, a.view()).plan().dense_rows, size);
  }
  const auto sparser = nodes_matrix<double>(200, 3, false, 50);
  EXPECT_EQ(choose_format(engine, sparser.view(), Format::automatic).format, Format::sell);
  EXPECT_EQ(choose_format(engine, sparser.view(), Format::blocks).dense_rows, 3);
  const auto grid = grid_matrix<double>({12, 12, 12, 27});
  EXPECT_EQ(choose_format(engine, grid.view(), Format::automatic).format, Format::sell);
  // A slice is as long as its longest row.
  OwnedCsr<double> uneven;
  uneven.cols = 3001;  // no multiple of a dense block
  for (std::int64_t row = 0; row < uneven.cols; ++row) {
    const std::int64_t last = row == 7 ? uneven.cols : row + 1;
    for (std::int64_t column = row == 7 ? 0 : row; column < last; ++column) uneven.add(column, 1);
    uneven.end_row();
  }
  EXPECT_EQ(choose_format(engine, uneven.view(), Format::automatic).format, Format::csr);
  const auto odd = nodes_matrix<double>(35, 1);
  try {
    choose_format(engine, odd.view(), Format::blocks);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
  }
}

TEST(DenseBlocks, HaveTheSameBitsInSlicesOfAnyHeight) {
  const auto a = nodes_matrix<double>(500, 3, true, 10);
  const std::vector<double> p = random_vector<double>(a.rows, 2);
  const Halo halo = find_halo(a.view(), 0, a.rows, {192, 3});
  std::vector<double> first;
  for (const std::int64_t height : {1, 8, 32}) {
    const PartRows rows{0, a.rows, &halo, {}, {0, a.rows}};
    RowPieces pieces;
    const PartShape shape = shape_of(a.view(), rows, {Format::blocks, 3, 192, height, 0}, pieces);
    EXPECT_EQ(shape.slice_rows, height);
    EXPECT_GE(shape.elements, static_cast<std::int64_t>(a.columns.size()));
    std::vector<std::byte> tile(static_cast<std::size_t>(shape.bytes));
    pack(a.view(), rows, shape, {}, pieces, tile.data());
    const WorkShape work = work_shape(shape, 1);
    std::vector<std::byte> vectors(static_cast<std::size_t>(work.bytes));
    const PartVectors<double> v(work, vectors.data());
    std::ranges::copy(p, v.p);
    multiply<double>({shape, tile.data()}, {0, shape.blocks}, v, nullptr);
    const std::vector<double> q(v.q, v.q + a.rows);
    if (first.empty()) first = q;
    EXPECT_TRUE(same_bits(q, first)) << height;
  }
}

TEST(DenseBlocks, GiveSolvesTheSameBitsForAnyNumberOfDevices) {
  const auto a = nodes_matrix<double>(600, 3);
  const auto b = random_vector<double>(a.rows, 8);
  std::vector<double> first;
  std::int64_t iterations = 0;
  for (const char* const devices : {"emulated:1", "emulated:2", "emulated:4,peer=4GB/s", "cpu:2"}) {
    Engine engine({devices});
    std::vector<double> x(b.size());
    SolveOptions wanted;
    wanted.rtol = 1e-10;
    const Solver solver(engine, a.view(), {Format::automatic, Precondition::jacobi});
    EXPECT_EQ(solver.format(), Format::blocks);
    const SolveResult result = solver.cg(b.data(), x.data(), 1, wanted);
    EXPECT_EQ(result.reason, StopReason::converged);
    EXPECT_LE(residual(a, x, b), 1e-10 * norm(b));
    if (first.empty()) {
      first = x;
      iterations = result.iterations;
    }
    EXPECT_TRUE(same_bits(x, first));
    EXPECT_EQ(result.iterations, iterations);
  }
}

TEST(DenseBlocks, TakeNewValues) {
  auto a = nodes_matrix<double>(300, 3);
  const auto x = random_vector<double>(a.rows, 8);
  Engine engine({"emulated:2"});
  const Solver solver(engine, a.view());
  for (double& each : a.values) each *= 2;
  solver.update(a.view());
  const auto expected = a.times(x, 1);
  std::vector<double> y(x.size());
  solver.multiply(x.data(), y.data());
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-11);
}

TEST(Exchange, OfAnyKindAndWithOrWithoutOverlapGivesTheSameBits) {
  const auto grid = grid_matrix<double>({16, 16, 40, 27}, 0.5);
  const auto nodes = nodes_matrix<double>(900, 3);
  const auto expect_same = [](const CsrView& a) {
    const auto b = random_vector<double>(a.rows, 8);
    std::vector<double> first;
    for (const char* const devices : {"emulated:1", "emulated:3", "cpu:2"})
      for (const Exchange exchange : {Exchange::halo, Exchange::whole})
        for (const bool overlap : {false, true}) {
          Engine engine({devices});
          SolverOptions options;
          options.exchange = exchange;
          options.overlap = overlap;
          const Solver solver(engine, a, options);
          const PlanReport plan = solver.plan();
          for (std::size_t part = 0; part < plan.devices.size(); ++part) {
            const std::int64_t rows = plan.first_rows[part + 1] - plan.first_rows[part];
            if (exchange == Exchange::whole) {
              EXPECT_EQ(plan.halo_rows[part], a.rows - rows);
            }
            EXPECT_EQ(plan.overlaps[part],
                      overlap && plan.devices.size() > 1 && plan.border_rows[part] < rows);
          }
          std::vector<double> x(b.size());
          EXPECT_EQ(solver.cg(b.data(), x.data()).reason, StopReason::converged);
          if (first.empty()) first = x;
          EXPECT_TRUE(same_bits(x, first));
        }
  };
  expect_same(grid.view());
  expect_same(nodes.view());
}

TEST(MeasuredProducts, TakeTimeByTheEnginesClock) {
  const auto a = grid_matrix<double>({32, 32, 32, 27});
  EngineOptions options;
  options.machine = Machine::parse("emulated:1");
  constexpr double rate = 1e9;
  options.machine->kernels["bytes"]["emulated"][1000] = 1e9 / rate;
  options.machine->kernels["flops"]["emulated"][1000] = 1e-9;
  options.virtual_clock = true;
  Engine engine(options);
  const Solver solver(engine, a.view());
  const ProductModel model = solver.plan().models[0];
  const double seconds = solver.measure_product(20);
  EXPECT_GT(seconds, 0.8 * model.compute_seconds);
  EXPECT_LT(seconds, 1.3 * model.compute_seconds);
  EXPECT_THROW(solver.measure_product(0), Error);
}

}  // namespace
}  // namespace quadriga::sparse::testing
