// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/chebyshev_test.cpp: bounds of eigenvalues, and polynomials as preconditioner.
#include <cmath>
#include <numbers>
#include <span>

#include "sparse/spectrum.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

/// What is left of an error whose eigenvalue is given.
double left_of(double eigenvalue, const std::vector<SmoothingStep>& steps) {
  double z = 0;
  double d = 0;
  for (const SmoothingStep& each : steps) {
    d = each.momentum * d + each.weight * (1 - eigenvalue * z);
    z += d;
  }
  return 1 - eigenvalue * z;
}

TEST(ChebyshevSteps, ReduceAllErrorsBetweenTheBoundsAlike) {
  constexpr double low = 0.1, high = 1.7;
  for (const int degree : {1, 2, 3, 8}) {
    const auto steps = chebyshev_steps({low, high}, degree);
    ASSERT_EQ(std::ssize(steps), degree);
    const double wanted = 1 / std::cosh(degree * std::acosh((high + low) / (high - low)));
    double most = 0;
    for (int i = 0; i <= 1000; ++i)
      most = std::max(most, std::abs(left_of(low + (high - low) * i / 1000, steps)));
    EXPECT_NEAR(most, wanted, 1e-9) << degree;
  }
  const auto same = chebyshev_steps({2, 2}, 5);
  EXPECT_NEAR(left_of(2, same), 0, 1e-12);
  EXPECT_THROW(chebyshev_steps({0, 1}, 2), Error);
  EXPECT_THROW(chebyshev_steps({2, 1}, 2), Error);
  EXPECT_THROW(chebyshev_steps({1, 2}, 0), Error);
}

TEST(Bounds, EncloseTheEigenvaluesOfGrids) {
  const auto a = grid_matrix<double>({40, 40, 1});
  for (const char* devices : {"cpu:2", "emulated:1", "emulated:3"}) {
    Engine engine({devices});
    SolverOptions options;
    options.precondition = Precondition::chebyshev;
    const Solver solver(engine, a.view(), options);
    const EigenvalueBounds bounds = solver.plan().eigenvalues;
    const double largest = 1 + std::cos(std::numbers::pi / 41);
    EXPECT_GE(bounds.high, largest) << devices;
    EXPECT_LE(bounds.high, 1.2 * largest) << devices;
    EXPECT_GT(bounds.low, 0) << devices;
    EXPECT_LT(bounds.low, 0.1) << devices;
  }
}

TEST(Bounds, OfFewOrNoIterationsAreUsable) {
  EXPECT_EQ(bounds_of({}).high, 1);
  const CgStep exact{0.5, 0};
  EXPECT_NEAR(bounds_of({&exact, 1}).low, 2, 1e-12);
  EXPECT_NEAR(bounds_of({&exact, 1}).high, 2, 1e-12);
}

TEST(Condition, OfKnownMatrices) {
  EXPECT_EQ(condition_of({}), 1);
  const CgStep exact{0.5, 0};
  EXPECT_EQ(condition_of({&exact, 1}), 1);
  // alpha and beta of the Lanczos matrix of 2 and -1: eigenvalues 2 - 2*cos(i*pi/(n + 1)).
  constexpr int n = 500;
  std::vector<CgStep> steps(n);
  double pivot = 2;
  for (CgStep& each : steps) {
    each = {1 / pivot, 1 / (pivot * pivot)};
    pivot = 2 - 1 / pivot;
  }
  const auto expected = [](int order) {
    const double angle = std::numbers::pi / (order + 1);
    return (1 + std::cos(angle)) / (1 - std::cos(angle));
  };
  EXPECT_NEAR(condition_of(steps), expected(n), 1e-5 * expected(n));
  // Those that go on from others tell of a part of the matrix.
  const auto rest = std::span(steps).subspan(n / 2);
  EXPECT_NEAR(condition_of(rest, steps[n / 2 - 1]), expected(n / 2), 1e-5 * expected(n / 2));
}

template <class T>
class Chebyshev : public ::testing::Test {};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Chebyshev, Types);

TYPED_TEST(Chebyshev, TakesFewerIterationsWithTheSameBitsEverywhere) {
  using T = TypeParam;
  const auto a = grid_matrix<T>({14, 12, 9});
  const auto b = random_vector<T>(a.rows * 2, 8);
  SolveOptions wanted;
  wanted.rtol = 1e-4;
  const auto solve = [&](const char* devices, SolverOptions options, std::vector<T>& x) {
    Engine engine({devices});
    const Solver solver(engine, a.view(), options);
    x.assign(b.size(), T{});
    const SolveResult result = solver.cg(b.data(), x.data(), 2, wanted);
    EXPECT_EQ(result.reason, StopReason::converged) << devices;
    return result.iterations;
  };
  SolverOptions jacobi;
  jacobi.precondition = Precondition::jacobi;
  std::vector<T> x, other;
  const auto many = solve("emulated:1", jacobi, x);
  SolverOptions options;
  options.precondition = Precondition::chebyshev;
  for (const int degree : {1, 2, 4}) {
    options.degree = degree;
    const auto few = solve("emulated:1", options, x);
    EXPECT_LT(few, degree > 1 ? many : 2 * many);
    for (const char* devices : {"emulated:3", "emulated:2,memory=16MiB"}) {
      EXPECT_EQ(solve(devices, options, other), few) << devices;
      EXPECT_TRUE(same_bits(x, other)) << devices;
    }
    SolverOptions by_tasks = options;
    by_tasks.recorded = false;
    EXPECT_EQ(solve("emulated:1", by_tasks, other), few);
    EXPECT_TRUE(same_bits(x, other));
  }
}

TEST(ChebyshevSolver, FollowsNewValues) {
  auto a = grid_matrix<double>({12, 12, 6}, 0.05);
  const auto b = random_vector<double>(a.rows, 4);
  std::vector<double> x(b.size()), other(b.size());
  SolverOptions options;
  options.precondition = Precondition::chebyshev;
  const auto solve = [&](const Solver& solver, std::vector<double>& out) {
    out.assign(out.size(), 0);
    SolveOptions wanted;
    wanted.rtol = 1e-9;
    return solver.cg(b.data(), out.data(), 1, wanted);
  };
  for (const char* devices : {"emulated:1", "emulated:2"}) {
    Engine engine({devices});
    const Solver solver(engine, a.view(), options);
    solve(solver, x);
    auto scaled = a;
    for (std::size_t i = 0; i < scaled.values.size(); ++i)
      if (scaled.values[i] > 0) scaled.values[i] *= 3;
    solver.update(scaled.view());
    const Solver fresh(engine, scaled.view(), options);
    EXPECT_EQ(solver.plan().eigenvalues.high, fresh.plan().eigenvalues.high);
    EXPECT_EQ(solve(solver, x).iterations, solve(fresh, other).iterations);
    EXPECT_TRUE(same_bits(x, other));
  }
}

TEST(ChebyshevSolver, SaysWhatIsWrongWithTheMatrix) {
  Engine engine({"emulated:2"});
  auto a = grid_matrix<double>({9, 8, 7});
  SolverOptions options;
  options.precondition = Precondition::chebyshev;
  const auto reason = [&] {
    const Solver solver(engine, a.view(), options);
    const auto b = random_vector<double>(a.rows, 4);
    std::vector<double> x(b.size());
    return solver.cg(b.data(), x.data()).reason;
  };
  for (double& each : a.values) each = -each;
  const StopReason negative = reason();
  EXPECT_TRUE(negative == StopReason::not_positive_definite ||
              negative == StopReason::indefinite_preconditioner);
  a.values[1] = NAN;
  EXPECT_EQ(reason(), StopReason::not_finite);
}

}  // namespace
}  // namespace quadriga::sparse::testing
