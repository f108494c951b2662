// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/resumed_test.cpp: solves that go on with a residual of the caller's.
#include <quadriga/error.h>

#include <algorithm>
#include <limits>

#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

using Matrix = OwnedCsr<double, std::int64_t>;

SolveOptions unchecked(double rtol) {
  SolveOptions options;
  options.rtol = rtol;
  options.zero_start = true;
  options.checked = false;
  return options;
}

/// Iterations to `rtol`, where the residual is replaced whenever it has fallen to a part of itself.
std::int64_t iterations_by_parts(const Matrix& a, const Solver& solver,
                                 const std::vector<double>& b, double rtol, double part) {
  std::vector<double> r = b, x(b.size()), all(b.size());
  Solve solve = solver.begin_cg(r.data(), x.data(), 1, unchecked(part));
  std::int64_t iterations = 0;
  while (true) {
    const SolveResult result = solve.finish();
    EXPECT_EQ(result.reason, StopReason::converged);
    iterations += result.iterations;
    for (std::size_t i = 0; i < x.size(); ++i) all[i] += x[i];
    const std::vector<double> product = a.times(all, 1);
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = b[i] - product[i];
    EXPECT_NEAR(result.true_residuals[0], norm(r), 1e-6 * norm(r) + 1e-14 * norm(b));
    if (norm(r) <= rtol * norm(b)) return iterations;
    std::ranges::fill(x, 0.0);
    solve.resume(std::max(part, rtol * norm(b) / norm(r)), -1);
  }
}

TEST(Resumed, TakesTheIterationsOfOneSolve) {
  const Matrix a = grid_matrix<double>({13, 12, 11});
  const auto b = random_vector<double>(a.rows, 5);
  for (const char* const devices : {"cpu:2", "emulated:1,memory=8MiB", "emulated:3,memory=8MiB"}) {
    SCOPED_TRACE(devices);
    Engine engine({devices});
    SolverOptions options;
    options.precondition = Precondition::jacobi;
    const Solver solver(engine, a.view(), options);
    std::vector<double> x(b.size());
    const SolveResult plain = solver.cg(b.data(), x.data(), 1, unchecked(1e-9));
    EXPECT_NEAR(static_cast<double>(iterations_by_parts(a, solver, b, 1e-9, 0.1)),
                static_cast<double>(plain.iterations), 1);
  }
}

TEST(Resumed, OnlyWhatWasUncheckedAndHasFinished) {
  Engine engine({"cpu:1"});
  const Matrix a = grid_matrix<double>({5, 4, 1});
  const Solver solver(engine, a.view());
  const std::vector<double> b(static_cast<std::size_t>(a.rows), 1);
  std::vector<double> x(b.size());
  Solve checked = solver.begin_cg(b.data(), x.data());
  checked.finish();
  EXPECT_THROW(checked.resume(0.1, -1), Error);
  Solve solve = solver.begin_cg(b.data(), x.data(), 1, unchecked(0.1));
  EXPECT_THROW(solve.resume(0.1, -1), Error);
  solve.finish();
  EXPECT_THROW(solve.resume(-1, -1), Error);
  EXPECT_THROW(solve.resume(std::numeric_limits<double>::quiet_NaN(), -1), Error);
  solve.resume(0.1, -1);
  EXPECT_THROW(solve.resume(0.1, -1), Error);
  EXPECT_EQ(solve.finish().reason, StopReason::converged);
}

}  // namespace
}  // namespace quadriga::sparse::testing
