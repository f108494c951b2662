// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/aggregation_test.cpp: solves with levels below the matrix.
#include "sparse/aggregation.h"

#include <cmath>

#include "sparse/hierarchy.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

SolverOptions aggregated() {
  SolverOptions options;
  options.precondition = Precondition::aggregation;
  return options;
}

/// An elastic chain of nodes with d unknowns each, which turn into each other.
template <class T>
OwnedCsr<T> chain_matrix(std::int64_t nodes, int d) {
  OwnedCsr<T> a;
  a.cols = nodes * d;
  for (std::int64_t node = 0; node < nodes; ++node)
    for (int i = 0; i < d; ++i) {
      for (const std::int64_t other : {node - 1, node, node + 1})
        for (int j = 0; j < d && other >= 0 && other < nodes; ++j) {
          const double size = i == j ? 2 : 0.3;
          a.add(other * d + j, T(static_cast<float>(other == node ? 2 * size : -size)));
        }
      a.end_row();
    }
  return a;
}

template <class T>
class Aggregated : public ::testing::Test {};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Aggregated, Types);

TYPED_TEST(Aggregated, SolvesHaveTheSameBitsOnAllDevices) {
  using T = TypeParam;
  const auto a = grid_matrix<T>({30, 25, 12});
  const auto b = random_vector<T>(a.rows * 2, 8);
  SolveOptions wanted;
  wanted.rtol = 1e-4;
  const auto solve = [&](const char* devices, const SolverOptions& options, std::vector<T>& x) {
    Engine engine({devices});
    const Solver solver(engine, a.view(), options);
    const auto levels = solver.plan().levels;
    EXPECT_GE(levels.size(), 2U);
    EXPECT_EQ(levels.front().rows, a.rows);
    x.assign(b.size(), T{});
    const SolveResult result = solver.cg(b.data(), x.data(), 2, wanted);
    EXPECT_EQ(result.reason, StopReason::converged) << devices;
    return result.iterations;
  };
  std::vector<T> x, other;
  SolverOptions jacobi;
  jacobi.precondition = Precondition::jacobi;
  Engine engine({"emulated:1"});
  std::vector<T> many(b.size());
  const auto count = Solver(engine, a.view(), jacobi).cg(b.data(), many.data(), 2, wanted);
  const auto few = solve("emulated:1", aggregated(), x);
  EXPECT_LT(2 * few, count.iterations);
  for (const char* devices : {"emulated:3", "emulated:2,memory=16MiB", "emulated:5"}) {
    EXPECT_EQ(solve(devices, aggregated(), other), few) << devices;
    EXPECT_TRUE(same_bits(x, other)) << devices;
  }
  SolverOptions by_tasks = aggregated();
  by_tasks.recorded = false;
  EXPECT_EQ(solve("emulated:1", by_tasks, other), few);
  EXPECT_TRUE(same_bits(x, other));
}

TEST(AggregatedGrids, NeedHardlyMoreIterationsIfTheyAreLarger) {
  const auto iterations = [](std::int64_t n) {
    const auto a = grid_matrix<double>({n, n, n});
    const auto b = random_vector<double>(a.rows, 3);
    std::vector<double> x(b.size());
    Engine engine({"cpu:2"});
    SolveOptions wanted;
    wanted.rtol = 1e-8;
    const SolveResult found =
        Solver(engine, a.view(), aggregated()).cg(b.data(), x.data(), 1, wanted);
    EXPECT_EQ(found.reason, StopReason::converged);
    return static_cast<double>(found.iterations);
  };
  EXPECT_LE(iterations(32), 1.4 * iterations(16));
}

TEST(AggregatedNodes, OfSeveralUnknownsAreFoundAndFollowGivenVectors) {
  for (const int d : {2, 3}) {
    const auto a = chain_matrix<double>(200, d);
    const auto b = random_vector<double>(a.rows, 4);
    Engine engine({"emulated:2"});
    const auto solve = [&](const SolverOptions& options) {
      const Solver solver(engine, a.view(), options);
      std::vector<double> x(b.size());
      SolveOptions wanted;
      wanted.rtol = 1e-8;
      const SolveResult found = solver.cg(b.data(), x.data(), 1, wanted);
      EXPECT_EQ(found.reason, StopReason::converged);
      EXPECT_LE(residual(a, x, b), 1.01e-8 * norm(b));
      return std::pair(found.iterations, solver.plan().levels[1].rows);
    };
    const auto [few, rows] = solve(aggregated());
    EXPECT_EQ(rows % d, 0);
    SolverOptions one = aggregated();
    std::vector<double> ones(b.size(), 1);
    one.aggregation = {ones.data(), 1, d, 0};
    const auto [many, nodes] = solve(one);
    EXPECT_EQ(nodes * d, rows);
    // A single constant doesn't represent how unknowns of a node differ.
    EXPECT_LT(few, many);
  }
}

TEST(AggregatedSolver, FollowsNewValuesOnTheSameAggregates) {
  const auto a = grid_matrix<double>({20, 20, 10}, 0.05);
  const auto b = random_vector<double>(a.rows, 4);
  std::vector<double> x(b.size()), other(b.size());
  const auto solve = [&](const Solver& solver, std::vector<double>& out) {
    out.assign(out.size(), 0);
    SolveOptions wanted;
    wanted.rtol = 1e-9;
    return solver.cg(b.data(), out.data(), 1, wanted).iterations;
  };
  for (const char* devices : {"emulated:1", "emulated:2", "cpu:2"}) {
    Engine engine({devices});
    const Solver solver(engine, a.view(), aggregated());
    const auto before = solve(solver, x);
    auto scaled = a;
    for (double& each : scaled.values) each *= 1000;
    solver.update(scaled.view());
    const Solver fresh(engine, scaled.view(), aggregated());
    EXPECT_EQ(solve(solver, x), solve(fresh, other)) << devices;
    EXPECT_TRUE(same_bits(x, other)) << devices;
    EXPECT_NEAR(static_cast<double>(solve(solver, x)), static_cast<double>(before), 1) << devices;
    solver.update(a.view());
    EXPECT_EQ(solve(solver, x), before);
  }
}

TEST(GivenLevels, SolveAsThoseThatWereMade) {
  const auto a = grid_matrix<double>({24, 20, 9});
  Engine engine({"cpu:2"});
  const auto aggregator = make_aggregator(engine, a.view(), {}, 1);
  const MadeLevels made = aggregator->make(
      a.view(), {1, estimate_bounds(engine, a.view(), 1)},
      [&](const CsrView& m, int rows) { return estimate_bounds(engine, m, rows); });
  SolverOptions options;
  options.precondition = Precondition::hierarchy;
  for (const auto& each : made.levels)
    options.levels.push_back(
        {each.restriction.view(), each.prolongation.view(), each.matrix.view()});
  const auto b = random_vector<double>(a.rows, 4);
  const auto solve = [&](const SolverOptions& wanted) {
    std::vector<double> x(b.size());
    SolverOptions with_csr = wanted;
    const SolveResult found = Solver(engine, a.view(), with_csr).cg(b.data(), x.data());
    EXPECT_EQ(found.reason, StopReason::converged);
    return std::pair(found.iterations, x);
  };
  const auto [count, x] = solve(aggregated());
  const auto [other, y] = solve(options);
  EXPECT_EQ(count, other);
  EXPECT_TRUE(same_bits(x, y));
  for (int wrong = 0; wrong < 4; ++wrong) {
    SolverOptions broken = options;
    CoarseLevel& first = broken.levels.front();
    if (wrong == 0) broken.levels.clear();
    if (wrong == 1) std::swap(first.restriction, first.prolongation);
    if (wrong == 2) first.matrix.dtype = DType::float32;
    if (wrong == 3) first.matrix.cols += 1;
    EXPECT_THROW(Solver(engine, a.view(), broken), Error) << wrong;
  }
}

TEST(AggregatedSolver, TakesMatricesThatHaveNothingToAggregate) {
  Engine engine({"emulated:2"});
  OwnedCsr<double> a;
  a.cols = 40;
  for (int i = 0; i < 40; ++i) {
    a.add(i, 1 + i % 5);
    a.end_row();
  }
  const auto b = random_vector<double>(40, 4);
  std::vector<double> x(b.size());
  const Solver solver(engine, a.view(), aggregated());
  EXPECT_TRUE(solver.plan().levels.empty());
  EXPECT_EQ(solver.cg(b.data(), x.data()).reason, StopReason::converged);
  const OwnedCsr<double> none;
  EXPECT_EQ(Solver(engine, none.view(), aggregated()).rows(), 0);
}

TEST(AggregatedSolver, SaysWhatIsWrongWithTheMatrix) {
  Engine engine({"emulated:2"});
  auto a = grid_matrix<double>({9, 8, 7});
  const auto reason = [&] {
    const Solver solver(engine, a.view(), aggregated());
    const auto b = random_vector<double>(a.rows, 4);
    std::vector<double> x(b.size());
    return solver.cg(b.data(), x.data()).reason;
  };
  for (double& each : a.values) each = -each;
  const StopReason negative = reason();
  EXPECT_TRUE(negative == StopReason::not_positive_definite ||
              negative == StopReason::indefinite_preconditioner);
  a.values[1] = NAN;
  EXPECT_NE(reason(), StopReason::converged);
  SolverOptions options = aggregated();
  options.aggregation.unknowns = 5;
  EXPECT_THROW(Solver(engine, a.view(), options), Error);
  options.aggregation = {nullptr, 0, 0, -1};
  EXPECT_THROW(Solver(engine, a.view(), options), Error);
}

}  // namespace
}  // namespace quadriga::sparse::testing
