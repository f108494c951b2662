// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/block_jacobi_test.cpp: inverses of diagonal blocks as preconditioner.
#include "sparse/inverses.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

/// A grid of nodes with `size` unknowns each, which depend strongly on each other and differ in
/// scale: point Jacobi sees neither.
template <class T>
OwnedCsr<T> coupled_nodes(std::int64_t side, int size) {
  OwnedCsr<T> a;
  const std::int64_t nodes = side * side;
  a.cols = nodes * size;
  const auto strength = [](std::int64_t node) {
    return static_cast<float>(1 + node % 7 * node % 13);
  };
  for (std::int64_t node = 0; node < nodes; ++node)
    for (int i = 0; i < size; ++i) {
      const auto add_near = [&](std::int64_t other, bool is_there) {
        if (is_there) a.add(other * size + i, T(-1));
      };
      add_near(node - side, node >= side);
      add_near(node - 1, node % side > 0);
      for (int j = 0; j < size; ++j)
        a.add(node * size + j, T((i == j ? 4.05F : 0.0F) + 4 * strength(node)));
      add_near(node + 1, node % side < side - 1);
      add_near(node + side, node < nodes - side);
      a.end_row();
    }
  return a;
}

TEST(Inverses, TimesTheMatrixAreTheIdentity) {
  for (const int size : {1, 2, 3, 4}) {
    auto matrix = random_vector<std::complex<double>>(size * size, 3);
    const auto given = matrix;
    ASSERT_TRUE(invert(matrix.data(), size));
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) {
        std::complex<double> sum;
        for (int k = 0; k < size; ++k) sum += matrix[i * size + k] * given[k * size + j];
        EXPECT_NEAR(std::abs(sum - (i == j ? 1.0 : 0.0)), 0, 1e-12);
      }
  }
  std::vector<double> swapped{0, 2, 4, 0};
  ASSERT_TRUE(invert(swapped.data(), 2));
  EXPECT_EQ(swapped, (std::vector<double>{0, 0.25, 0.5, 0}));
  std::vector<double> singular{1, 2, 2, 4};
  EXPECT_FALSE(invert(singular.data(), 2));
  std::vector<double> lacking{1, NAN, 2, 4};
  EXPECT_FALSE(invert(lacking.data(), 2));
}

template <class T>
class BlockJacobi : public ::testing::Test {};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(BlockJacobi, Types);

TYPED_TEST(BlockJacobi, TakesFewerIterationsWithTheSameBitsEverywhere) {
  using T = TypeParam;
  Engine one({"emulated:1"}), three({"emulated:3"}), cores({"cpu:2"});
  for (const int size : {2, 3, 4}) {
    const auto a = coupled_nodes<T>(14, size);
    const auto b = random_vector<T>(a.rows * 2, 8);
    SolveOptions wanted;
    wanted.rtol = 1e-4;
    const auto solve = [&](Engine& engine, SolverOptions options, std::vector<T>& x) {
      x.assign(b.size(), T{});
      const SolveResult result =
          Solver(engine, a.view(), options).cg(b.data(), x.data(), 2, wanted);
      EXPECT_EQ(result.reason, StopReason::converged);
      return result.iterations;
    };
    for (const Format format : {Format::csr, Format::blocks}) {
      SolverOptions options{format, Precondition::jacobi};
      std::vector<T> x, first;
      const std::int64_t by_points = solve(one, options, x);
      options.precondition = Precondition::block_jacobi;
      options.inverse_rows = size;
      const std::int64_t by_blocks = solve(one, options, first);
      EXPECT_LT(4 * by_blocks, 3 * by_points);
      for (Engine* const engine : {&cores, &three}) {
        EXPECT_EQ(solve(*engine, options, x), by_blocks);
        EXPECT_TRUE(same_bits(x, first));
      }
      options.recorded = false;
      EXPECT_EQ(solve(one, options, x), by_blocks);
      EXPECT_TRUE(same_bits(x, first));
    }
  }
}

TEST(BlockJacobi, OfOtherSizesThanTheFormatsWorks) {
  const auto a = coupled_nodes<double>(12, 4);
  const auto b = random_vector<double>(a.rows, 8);
  Engine two({"emulated:2"}), core({"cpu:1"});
  for (const int size : {2, 3, 4})
    for (const Format format : {Format::csr, Format::sell, Format::blocks})
      for (Engine* const engine : {&two, &core}) {
        SolverOptions options{format, Precondition::block_jacobi};
        options.inverse_rows = size;
        std::vector<double> x(b.size());
        const SolveResult result = Solver(*engine, a.view(), options).cg(b.data(), x.data());
        EXPECT_EQ(result.reason, StopReason::converged);
        EXPECT_LE(residual(a, x, b), 1e-5 * norm(b));
      }
}

TEST(BlockJacobi, NamesWhatIsWrong) {
  const auto refusal = [](const OwnedCsr<double>& a, int size) {
    Engine engine({"cpu:1"});
    SolverOptions options{Format::csr, Precondition::block_jacobi};
    options.inverse_rows = size;
    try {
      const Solver solver(engine, a.view(), options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      return std::string(error.what());
    }
    return std::string();
  };
  auto a = coupled_nodes<double>(4, 3);
  EXPECT_EQ(refusal(a, 3), "");
  EXPECT_EQ(refusal(a, 0), "");
  EXPECT_NE(refusal(a, 5).find("blocks of 5 rows"), std::string::npos);
  for (auto at = a.offsets[6]; at < a.offsets[9]; ++at) a.values[at] = 1;
  EXPECT_NE(refusal(a, 3).find("from row 6"), std::string::npos);
}

}  // namespace
}  // namespace quadriga::sparse::testing
