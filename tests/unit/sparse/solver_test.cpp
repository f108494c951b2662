// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/solver_test.cpp: conjugate gradients on all kinds of devices, and its faults.
#include <cmath>
#include <limits>

#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

using Matrix = OwnedCsr<double, std::int64_t>;

/// Textbook conjugate gradients; the number of iterations.
std::int64_t plain_cg(const Matrix& a, const std::vector<double>& b, double rtol,
                      const std::vector<double>& m) {
  const auto dot = [](const auto& x, const auto& y) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
    return sum;
  };
  std::vector<double> r = b, p, z(b.size());
  double rho = 0;
  const double tolerance = rtol * norm(b);
  for (std::int64_t iteration = 0;; ++iteration) {
    if (norm(r) < tolerance) return iteration;
    for (std::size_t i = 0; i < r.size(); ++i) z[i] = m[i] * r[i];
    const double next = dot(r, z);
    if (iteration == 0) p = z;
    for (std::size_t i = 0; iteration > 0 && i < r.size(); ++i) p[i] = z[i] + next / rho * p[i];
    const std::vector<double> q = a.times(p, 1);
    const double alpha = next / dot(p, q);
    for (std::size_t i = 0; i < r.size(); ++i) r[i] -= alpha * q[i];
    rho = next;
  }
}

/// Rows and columns scaled so that Jacobi has something to do.
Matrix scaled(Matrix a) {
  const auto factor = [](std::int64_t i) { return 1.0 + static_cast<double>(i % 17); };
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (auto at = a.offsets[row]; at < a.offsets[row + 1]; ++at)
      a.values[at] *= factor(row) * factor(a.columns[at]);
  return a;
}

TEST(ConjugateGradients, TakesThePlainNumberOfIterations) {
  const Matrix a = scaled(grid_matrix<double>({12, 11, 10}));
  const auto b = random_vector<double>(a.rows, 2);
  std::vector<double> ones(b.size(), 1), inverse(b.size());
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (auto at = a.offsets[row]; at < a.offsets[row + 1]; ++at)
      if (a.columns[at] == row) inverse[row] = 1 / a.values[at];
  for (const char* const devices : {"cpu:2", "emulated:3,memory=8MiB"}) {
    Engine engine({devices});
    for (const bool jacobi : {false, true}) {
      SolverOptions options;
      options.precondition = jacobi ? Precondition::jacobi : Precondition::none;
      const Solver solver(engine, a.view(), options);
      std::vector<double> x(b.size());
      SolveOptions wanted;
      wanted.rtol = 1e-8;
      const SolveResult result = solver.cg(b.data(), x.data(), 1, wanted);
      EXPECT_EQ(result.reason, StopReason::converged);
      const auto plain = static_cast<double>(plain_cg(a, b, 1e-8, jacobi ? inverse : ones));
      EXPECT_NEAR(static_cast<double>(result.iterations), plain, 2 + plain / 50);
      EXPECT_LE(residual(a, x, b), 1.0001e-8 * norm(b));
      EXPECT_NEAR(result.true_residuals[0], residual(a, x, b), 1e-10 * norm(b));
      EXPECT_EQ(result.residuals.size(), static_cast<std::size_t>(result.iterations + 1));
      EXPECT_NEAR(result.residuals.front(), norm(b), 1e-9);
    }
  }
}

TEST(ConjugateGradients, HasTheSameBitsForAnyNumberOfDevices) {
  const Matrix a = grid_matrix<double>({16, 15, 14, 27}, 0.1);
  const auto b = random_vector<double>(a.rows, 6);
  std::vector<double> expected;
  std::int64_t iterations = -1;
  for (const char* const devices : {"emulated:1", "emulated:2", "emulated:3", "emulated:4", "cpu:2",
                                    "emulated:1,memory=1MiB"}) {
    Engine engine({devices});
    SolverOptions options;
    options.precondition = Precondition::jacobi;
    const Solver solver(engine, a.view(), options);
    std::vector<double> x(b.size());
    SolveOptions wanted;
    wanted.rtol = 1e-10;
    const SolveResult result = solver.cg(b.data(), x.data(), 1, wanted);
    EXPECT_EQ(result.reason, StopReason::converged);
    if (expected.empty()) {
      expected = x;
      iterations = result.iterations;
    }
    EXPECT_EQ(result.iterations, iterations) << devices;
    EXPECT_TRUE(same_bits(x, expected)) << devices;
  }
}

TEST(ConjugateGradients, StepsGiveTheBitsOfOneCall) {
  const Matrix a = grid_matrix<double>({10, 10, 10});
  const auto b = random_vector<double>(a.rows, 6);
  Engine engine({"cpu:2"});
  const Solver solver(engine, a.view());
  std::vector<double> whole(b.size()), stepped(b.size());
  const SolveResult result = solver.cg(b.data(), whole.data());
  Solve solve = solver.begin_cg(b.data(), stepped.data());
  std::int64_t steps = 1;
  while (!solve.advance(1)) ++steps;
  EXPECT_EQ(solve.finish().iterations, result.iterations);
  EXPECT_EQ(steps, result.iterations);
  EXPECT_THROW(solve.advance(1), Error);
  EXPECT_THROW(solve.finish(), Error);
  EXPECT_TRUE(same_bits(whole, stepped));
}

TEST(ConjugateGradients, ColumnsEndOneByOne) {
  const Matrix a = grid_matrix<double>({9, 9, 9});
  constexpr std::int64_t columns = 5;
  auto b = random_vector<double>(a.rows * columns, 8);
  for (std::int64_t i = 0; i < a.rows; ++i) b[i * columns + 3] = 0;
  Engine engine({"emulated:2"});
  const Solver solver(engine, a.view());
  std::vector<double> x(b.size(), 0.25);
  const SolveResult result = solver.cg(b.data(), x.data(), columns);
  EXPECT_EQ(result.reason, StopReason::converged);
  for (std::int64_t c = 0; c < columns; ++c) {
    std::vector<double> one, alone(static_cast<std::size_t>(a.rows), 0.25), found;
    for (std::int64_t i = 0; i < a.rows; ++i) {
      one.push_back(b[i * columns + c]);
      found.push_back(x[i * columns + c]);
    }
    solver.cg(one.data(), alone.data());
    EXPECT_TRUE(same_bits(found, alone)) << c;
  }
}

template <class T>
void expect_solved(double rtol) {
  OwnedCsr<T, std::int64_t> a = grid_matrix<T>({9, 8, 7}, 0.5);
  // Hermitian: the upper triangle is turned one way, the lower the other.
  if constexpr (!std::is_floating_point_v<T>)
    for (std::int64_t row = 0; row < a.rows; ++row)
      for (auto at = a.offsets[row]; at < a.offsets[row + 1]; ++at)
        if (a.columns[at] != row) a.values[at] *= T(0, a.columns[at] > row ? 1 : -1);
  const auto b = random_vector<T>(a.rows, 3);
  std::vector<T> x(b.size());
  Engine engine({"emulated:2"});
  SolverOptions options{Format::sell, Precondition::jacobi};
  SolveOptions wanted;
  wanted.rtol = rtol;
  const SolveResult result = Solver(engine, a.view(), options).cg(b.data(), x.data(), 1, wanted);
  EXPECT_EQ(result.reason, StopReason::converged);
  EXPECT_LE(residual(a, x, b), 1.01 * rtol * norm(b));
}

TEST(ConjugateGradients, SolvesInAllTypes) {
  expect_solved<float>(1e-5);
  expect_solved<double>(1e-12);
  expect_solved<std::complex<float>>(1e-5);
  expect_solved<std::complex<double>>(1e-12);
}

SolveResult solve(const Matrix& a, const std::vector<double>& b, std::vector<double>& x,
                  const SolveOptions& wanted = {}, const SolverOptions& options = {}) {
  Engine engine({"emulated:2"});
  return Solver(engine, a.view(), options).cg(b.data(), x.data(), 1, wanted);
}

TEST(Faults, IndefiniteMatricesAreNoticed) {
  Matrix a = grid_matrix<double>({8, 8, 8}, -3);
  const auto b = random_vector<double>(a.rows, 3);
  std::vector<double> x(b.size());
  const SolveResult result = solve(a, b, x);
  EXPECT_EQ(result.reason, StopReason::not_positive_definite);
  for (const double each : x) EXPECT_TRUE(std::isfinite(each));
  EXPECT_NEAR(result.true_residuals[0], residual(a, x, b), 1e-9);
}

TEST(Faults, SingularMatricesAreNoticed) {
  Matrix a = grid_matrix<double>({8, 8, 8});
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (auto at = a.offsets[row]; at < a.offsets[row + 1]; ++at)
      if (row == 77 || a.columns[at] == 77) a.values[at] = 0;
  const auto b = random_vector<double>(a.rows, 3);
  std::vector<double> x(b.size());
  EXPECT_EQ(solve(a, b, x).reason, StopReason::diverged);
}

TEST(Faults, NansLeaveTheLastX) {
  Matrix a = grid_matrix<double>({8, 8, 8});
  auto b = random_vector<double>(a.rows, 3);
  std::vector<double> x(b.size());
  a.values[100] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(solve(a, b, x).reason, StopReason::not_finite);
  for (const double each : x) EXPECT_TRUE(std::isfinite(each));
  a = grid_matrix<double>({8, 8, 8});
  b[5] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(solve(a, b, x).reason, StopReason::not_finite);
}

TEST(Faults, IndefinitePreconditionersAreNoticed) {
  const Matrix a = grid_matrix<double>({8, 8, 8});
  const auto b = random_vector<double>(a.rows, 3);
  const std::vector<double> diagonal(b.size(), -1);
  std::vector<double> x(b.size());
  SolverOptions options{Format::csr, Precondition::diagonal, diagonal.data()};
  EXPECT_EQ(solve(a, b, x, {}, options).reason, StopReason::indefinite_preconditioner);
}

TEST(Faults, AToleranceBelowRoundingStagnates) {
  const Matrix a = scaled(grid_matrix<double>({8, 8, 8}));
  const auto b = random_vector<double>(a.rows, 3);
  std::vector<double> x(b.size());
  SolveOptions wanted;
  wanted.rtol = 1e-18;
  const SolveResult result = solve(a, b, x, wanted);
  EXPECT_EQ(result.reason, StopReason::stagnated);
  EXPECT_LT(residual(a, x, b), 1e-10 * norm(b));
}

TEST(Faults, LimitsOfIterationsHold) {
  const Matrix a = grid_matrix<double>({8, 8, 8});
  const auto b = random_vector<double>(a.rows, 3);
  for (const std::int64_t limit : {0, 1, 7}) {
    std::vector<double> x(b.size());
    SolveOptions wanted;
    wanted.iterations = limit;
    const SolveResult result = solve(a, b, x, wanted);
    EXPECT_EQ(result.reason, StopReason::iterations);
    EXPECT_EQ(result.iterations, limit);
    EXPECT_NEAR(result.true_residuals[0], residual(a, x, b), 1e-9);
  }
}

TEST(Faults, ZeroDiagonalsAreNamed) {
  Matrix a = grid_matrix<double>({8, 8, 8});
  for (auto at = a.offsets[9]; at < a.offsets[10]; ++at)
    if (a.columns[at] == 9) a.values[at] = 0;
  std::vector<double> b(static_cast<std::size_t>(a.rows)), x(b.size());
  try {
    solve(a, b, x, {}, {Format::csr, Precondition::jacobi});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "Jacobi preconditioner: the diagonal of row 9 is zero");
  }
}

TEST(Faults, EmptySystemsAreSolved) {
  Matrix a;
  std::vector<double> none;
  const SolveResult result = solve(a, none, none);
  EXPECT_EQ(result.reason, StopReason::converged);
  EXPECT_EQ(result.iterations, 0);
}

TEST(Faults, CancelledSolvesLeaveASolverThatWorks) {
  Engine engine({"emulated:2"});
  expect_cancelled_and_usable(engine);
}

}  // namespace
}  // namespace quadriga::sparse::testing
