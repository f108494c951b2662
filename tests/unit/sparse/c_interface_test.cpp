// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/c_interface_test.cpp: sparse_c.h beside a dense oracle, and what it refuses.
#include <quadriga/sparse_c.h>

#include "sanitized.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

class SparseC : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(quadriga_open("emulated:2", &engine_), 0); }
  void TearDown() override { quadriga_close(engine_); }
  quadriga_engine* engine_ = nullptr;
};

template <class T>
constexpr char letter_of() {
  if constexpr (std::is_same_v<T, float>) return 's';
  if constexpr (std::is_same_v<T, double>) return 'd';
  if constexpr (std::is_same_v<T, std::complex<float>>) return 'c';
  return 'Z';
}

template <class T>
void solve(quadriga_engine* engine, const char* precondition) {
  const auto a = grid_matrix<T>({12, 11, 5});
  const CsrView view = a.view();
  quadriga_sparse* solver = nullptr;
  ASSERT_EQ(quadriga_sparse_open(engine, letter_of<T>(), a.rows, 8, view.offsets, view.columns,
                                 view.values, precondition, &solver),
            0)
      << quadriga_message();
  constexpr std::int64_t k = 2;
  const auto b = random_vector<T>(a.rows * k, 3);
  std::vector<T> x(b.size()), y(b.size());
  quadriga_sparse_result result{};
  ASSERT_EQ(quadriga_sparse_cg(solver, k, b.data(), x.data(), 1e-4, 0, -1, &result), 0);
  EXPECT_STREQ(result.reason, "converged");
  EXPECT_GT(result.iterations, 0);
  EXPECT_GT(result.residual, 0);
  ASSERT_EQ(quadriga_sparse_multiply(solver, k, x.data(), y.data()), 0);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] -= b[i];
  EXPECT_LE(norm(y), 2e-4 * norm(b));
  auto scaled = a;
  for (T& each : scaled.values) each *= T(2);
  const CsrView other = scaled.view();
  ASSERT_EQ(quadriga_sparse_update(solver, other.offsets, other.columns, other.values), 0);
  std::vector<T> half(b.size());
  ASSERT_EQ(quadriga_sparse_cg(solver, k, b.data(), half.data(), 1e-4, 0, -1, nullptr), 0);
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(std::abs(T(2) * half[i] - x[i]), 0, 2e-3 * norm(x));
  quadriga_sparse_close(solver);
}

TEST_F(SparseC, SolvesInAllTypesWithAllPreconditioners) {
  for (const char* each : {"", "none", "jacobi", "block_jacobi", "chebyshev", "aggregation"}) {
    SCOPED_TRACE(each);
    solve<double>(engine_, each);
    if (is_sanitized && *each != '\0' && *each != 'a') continue;
    solve<float>(engine_, each);
    solve<std::complex<float>>(engine_, each);
    solve<std::complex<double>>(engine_, each);
  }
  solve<double>(engine_, nullptr);
}

TEST_F(SparseC, SaysWhyItHasNotConverged) {
  const std::int32_t offsets[]{0, 2, 4}, columns[]{0, 1, 0, 1};
  const double values[]{1, 2, 2, 1}, b[]{1, -1};
  quadriga_sparse* solver = nullptr;
  ASSERT_EQ(quadriga_sparse_open(engine_, 'd', 2, 4, offsets, columns, values, nullptr, &solver),
            0);
  double x[]{0, 0};
  quadriga_sparse_result result{};
  EXPECT_EQ(quadriga_sparse_cg(solver, 1, b, x, 1e-8, 0, -1, &result), QUADRIGA_BREAKDOWN);
  EXPECT_STREQ(result.reason, "not_positive_definite");
  EXPECT_NE(std::string(quadriga_message()).find("not_positive_definite"), std::string::npos);
  const double other[]{2, 1, 1, 3}, right[]{1, 0};
  ASSERT_EQ(quadriga_sparse_update(solver, offsets, columns, other), 0);
  EXPECT_EQ(quadriga_sparse_cg(solver, 1, right, x, 1e-12, 0, 1, &result), 1);
  EXPECT_STREQ(result.reason, "iterations");
  quadriga_sparse_close(solver);
}

TEST_F(SparseC, NamesTheArgumentThatIsWrong) {
  const std::int64_t offsets[]{0, 1, 2}, columns[]{0, 1}, far[]{0, 7};
  const double values[]{1, 1};
  quadriga_sparse* solver = nullptr;
  const auto open = [&](quadriga_engine* engine, char type, std::int64_t n, int bytes,
                        const void* o, const void* c, const void* v, const char* m) {
    return quadriga_sparse_open(engine, type, n, bytes, o, c, v, m, &solver);
  };
  EXPECT_EQ(open(nullptr, 'd', 2, 8, offsets, columns, values, ""), -1);
  EXPECT_EQ(open(engine_, 'x', 2, 8, offsets, columns, values, ""), -2);
  EXPECT_EQ(open(engine_, 'd', -1, 8, offsets, columns, values, ""), -3);
  EXPECT_EQ(open(engine_, 'd', 2, 2, offsets, columns, values, ""), -4);
  EXPECT_EQ(open(engine_, 'd', 2, 8, nullptr, columns, values, ""), -5);
  EXPECT_EQ(open(engine_, 'd', 2, 8, offsets, nullptr, values, ""), -6);
  EXPECT_EQ(open(engine_, 'd', 2, 8, offsets, columns, nullptr, ""), -7);
  EXPECT_EQ(open(engine_, 'd', 2, 8, offsets, far, values, ""), -7);
  EXPECT_EQ(open(engine_, 'd', 2, 8, offsets, columns, values, "ilu"), -8);
  EXPECT_EQ(quadriga_sparse_open(engine_, 'd', 2, 8, offsets, columns, values, "", nullptr), -9);
  EXPECT_EQ(solver, nullptr);
  ASSERT_EQ(open(engine_, 'd', 2, 8, offsets, columns, values, "jacobi"), 0);
  double x[]{1, 1}, y[]{0, 0};
  EXPECT_EQ(quadriga_sparse_multiply(nullptr, 1, x, y), -1);
  EXPECT_EQ(quadriga_sparse_multiply(solver, 0, x, y), -2);
  EXPECT_EQ(quadriga_sparse_multiply(solver, 1, nullptr, y), -3);
  EXPECT_EQ(quadriga_sparse_multiply(solver, 1, x, nullptr), -4);
  EXPECT_EQ(quadriga_sparse_multiply(solver, 1, x, x), -4);
  EXPECT_EQ(quadriga_sparse_cg(solver, 1, x, y, -1, 0, -1, nullptr), -5);
  EXPECT_EQ(quadriga_sparse_cg(solver, 1, x, y, 0, NAN, -1, nullptr), -6);
  EXPECT_EQ(quadriga_sparse_update(solver, offsets, far, values), -4);
  quadriga_sparse_close(solver);
  quadriga_sparse_close(nullptr);
}

TEST_F(SparseC, HasTheMethodThatIsAskedFor) {
  const auto a = grid_matrix<double>({12, 11, 5});
  const CsrView view = a.view();
  const auto b = random_vector<double>(a.rows, 3);
  const auto open = [&](const char* precondition, const char* method, quadriga_sparse** solver) {
    return quadriga_sparse_open_method(engine_, 'd', a.rows, 8, view.offsets, view.columns,
                                       view.values, precondition, method, solver);
  };
  for (const char* const each : {"classic", "single_reduction", "pipelined"}) {
    quadriga_sparse* solver = nullptr;
    ASSERT_EQ(open("jacobi", each, &solver), 0) << quadriga_message();
    EXPECT_STREQ(quadriga_sparse_method(solver), each);
    EXPECT_STREQ(quadriga_sparse_method_reason(solver), "asked for");
    std::vector<double> x(b.size());
    EXPECT_EQ(quadriga_sparse_cg(solver, 1, b.data(), x.data(), 1e-8, 0, -1, nullptr), 0);
    EXPECT_LE(residual(a, x, b), 1e-8 * norm(b));
    quadriga_sparse_close(solver);
  }
  quadriga_sparse* solver = nullptr;
  ASSERT_EQ(open(nullptr, nullptr, &solver), 0);
  EXPECT_STREQ(quadriga_sparse_method(solver), "classic");  // No rates are known.
  quadriga_sparse_close(solver);
  EXPECT_EQ(open("jacobi", "pipeline", &solver), -9);
  EXPECT_EQ(open("chebyshev", "pipelined", &solver), -9);
  EXPECT_NE(std::string_view(quadriga_message()).find("pipelined iterations"), std::string::npos);
  EXPECT_EQ(open("jacobi", "classic", nullptr), -10);
  EXPECT_EQ(quadriga_sparse_method(nullptr), nullptr);
  EXPECT_EQ(quadriga_sparse_method_reason(nullptr), nullptr);
}

}  // namespace
}  // namespace quadriga::sparse::testing
