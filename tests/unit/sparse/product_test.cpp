// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/product_test.cpp: products of all types, formats and cuts against plain sums.
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

template <class T>
class Product : public ::testing::Test {};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Product, Types);

/// How far sums of a few dozen terms of the size of one may be apart.
template <class T>
double rounding() {
  return std::is_same_v<T, float> || std::is_same_v<T, std::complex<float>> ? 2e-4 : 2e-12;
}

template <class T>
std::vector<T> product(Engine& engine, const CsrView& a, const std::vector<T>& x, std::int64_t k,
                       const SolverOptions& options) {
  std::vector<T> y(static_cast<std::size_t>(a.rows * k));
  Solver(engine, a, options).multiply(x.data(), y.data(), k);
  return y;
}

TYPED_TEST(Product, IsThatOfPlainSums) {
  using T = TypeParam;
  for (const char* const devices : {"cpu:2", "emulated:3,memory=16MiB"}) {
    Engine engine({devices});
    for (const Format format : {Format::csr, Format::sell})
      for (const std::int64_t n : {1, 7, 40, 700}) {
        const auto seed = static_cast<std::uint64_t>(n);
        const auto narrow = random_matrix<T>(n, seed);
        const auto wide = random_matrix<T, std::int64_t>(n, seed);
        for (const std::int64_t k : {1, 3, 4, 9}) {
          const auto x = random_vector<T>(n * k, 5);
          const auto expected = narrow.times(x, k);
          const auto y = product(engine, narrow.view(), x, k, {format});
          for (std::size_t i = 0; i < y.size(); ++i)
            ASSERT_NEAR(std::abs(std::complex<double>(y[i] - expected[i])), 0, rounding<T>());
          EXPECT_TRUE(same_bits(y, product(engine, wide.view(), x, k, {format})));
        }
      }
  }
}

TYPED_TEST(Product, HasTheSameBitsForAnyCutAndNumberOfColumns) {
  using T = TypeParam;
  const auto a = random_matrix<T>(3000, 9);
  constexpr std::int64_t columns = 6;
  const auto x = random_vector<T>(a.rows * columns, 1);
  Engine host({"cpu:2"});
  for (const Format format : {Format::csr, Format::sell}) {
    SolverOptions options{format};
    options.parts = 1;
    const auto expected = product(host, a.view(), x, columns, options);
    for (const int parts : {2, 5, 16}) {
      options.parts = parts;
      EXPECT_TRUE(same_bits(expected, product(host, a.view(), x, columns, options)));
    }
    for (const char* const devices : {"emulated:1", "emulated:4"}) {
      Engine engine({devices});
      EXPECT_TRUE(same_bits(expected, product(engine, a.view(), x, columns, {format})));
    }
    std::vector<T> one;
    for (std::int64_t i = 0; i < a.rows; ++i) one.push_back(x[i * columns + 2]);
    const auto y = product(host, a.view(), one, 1, {format});
    for (std::int64_t i = 0; i < a.rows; ++i) ASSERT_EQ(y[i], expected[i * columns + 2]);
  }
}

TEST(ProductOutOfCore, PartsPassThroughADeviceThatIsTooSmall) {
  const auto a = grid_matrix<double>({24, 24, 24, 27});
  const auto x = random_vector<double>(a.rows, 4);
  const auto expected = a.times(x, 1);
  Engine engine({"emulated:1,memory=2MiB"});
  const Solver solver(engine, a.view());
  EXPECT_GT(solver.plan().devices.size(), 2u);
  std::vector<double> y(x.size());
  solver.multiply(x.data(), y.data());
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-12);
}

TEST(Grids, LaplaciansAreThoseOfNeighbours) {
  for (const BoxGrid& grid : {BoxGrid{5, 4, 3, 7}, BoxGrid{5, 4, 3, 27}, BoxGrid{6, 2, 1, 7},
                              BoxGrid{7, 1, 1, 27}, BoxGrid{1, 1, 1, 7}}) {
    const auto a = grid_matrix<double>(grid);
    ASSERT_EQ(a.offsets.back(), elements_of(grid));
    std::vector<double> dense(static_cast<std::size_t>(a.rows * a.rows));
    for (std::int64_t row = 0; row < a.rows; ++row)
      for (auto at = a.offsets[row]; at < a.offsets[row + 1]; ++at) {
        if (at > a.offsets[row]) {
          EXPECT_LT(a.columns[at - 1], a.columns[at]);
        }
        dense[row * a.rows + a.columns[at]] = a.values[at];
      }
    for (std::int64_t i = 0; i < a.rows; ++i)
      for (std::int64_t j = 0; j < a.rows; ++j) {
        const auto apart = [&](std::int64_t stride, std::int64_t size) {
          return std::abs(i / stride % size - j / stride % size);
        };
        const auto dx = apart(1, grid.x), dy = apart(grid.x, grid.y),
                   dz = apart(grid.x * grid.y, grid.z);
        const bool near = grid.points == 27 ? std::max({dx, dy, dz}) == 1 : dx + dy + dz == 1;
        const double value = dense[i * a.rows + j];
        EXPECT_EQ(value, i == j ? dense[0] : near ? -1 : 0) << i << " " << j;
      }
  }
  EXPECT_EQ(grid_matrix<double>({5, 4, 3, 7}).values[0], 6);
  EXPECT_EQ(grid_matrix<double>({5, 4, 3, 27}).values[0], 26);
  EXPECT_EQ(grid_matrix<double>({6, 2, 1, 7}).values[0], 4);
  EXPECT_EQ(grid_matrix<double>({7, 1, 1, 27}).values[0], 2);
}

}  // namespace
}  // namespace quadriga::sparse::testing
