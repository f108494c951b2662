// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/recorded_test.cpp: iterations as one task beside iterations as tasks.
#include <cmath>
#include <limits>
#include <utility>

#include "unit/sparse/losses.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

struct Solved {
  SolveResult result;
  std::uint64_t tasks = 0;
};

template <class T>
Solved solve(const char* devices, const OwnedCsr<T, std::int64_t>& a, const std::vector<T>& b,
             std::vector<T>& x, std::int64_t columns, bool recorded, double rtol = 1e-10) {
  Engine engine({devices});
  SolverOptions options;
  options.precondition = Precondition::jacobi;
  options.recorded = recorded;
  const Solver solver(engine, a.view(), options);
  SolveOptions wanted;
  wanted.rtol = rtol;
  Solved solved{solver.cg(b.data(), x.data(), columns, wanted)};
  for (const DeviceCounters& each : engine.counters().devices) solved.tasks += each.tasks;
  return solved;
}

template <class T>
void expect_bits_of_tasks(double rtol, std::int64_t columns) {
  const auto a = grid_matrix<T>({11, 10, 9}, 0.1);
  const auto b = random_vector<T>(a.rows * columns, 6);
  std::vector<T> by_tasks(b.size()), recorded(b.size());
  const Solved first = solve("emulated:1", a, b, by_tasks, columns, false, rtol);
  const Solved second = solve("emulated:1", a, b, recorded, columns, true, rtol);
  EXPECT_EQ(first.result.reason, StopReason::converged);
  EXPECT_GT(first.result.iterations, 10);
  EXPECT_EQ(first.result.iterations, second.result.iterations);
  EXPECT_EQ(first.result.residuals, second.result.residuals);
  EXPECT_EQ(first.result.true_residuals, second.result.true_residuals);
  EXPECT_TRUE(same_bits(by_tasks, recorded));
  // However slow the machine, and short its batches.
  EXPECT_LT(3 * second.tasks, 2 * first.tasks) << "nothing was recorded";
}

TEST(RecordedIterations, HaveTheBitsOfTasks) {
  expect_bits_of_tasks<float>(1e-5, 1);
  expect_bits_of_tasks<double>(1e-10, 1);
  expect_bits_of_tasks<double>(1e-10, 5);
  expect_bits_of_tasks<std::complex<float>>(1e-5, 1);
  expect_bits_of_tasks<std::complex<double>>(1e-10, 3);
}

TEST(RecordedIterations, AreTheDefaultOnOneDevice) {
  const auto a = grid_matrix<double>({11, 10, 9}, 0.1);
  const auto b = random_vector<double>(a.rows, 6);
  const auto tasks_of = [&](const char* devices, std::optional<bool> recorded) {
    Engine engine({devices});
    SolverOptions options;
    options.recorded = recorded;
    std::vector<double> x(b.size());
    Solver(engine, a.view(), options).cg(b.data(), x.data());
    std::uint64_t tasks = 0;
    for (const DeviceCounters& each : engine.counters().devices) tasks += each.tasks;
    return tasks;
  };
  const std::uint64_t by_tasks = tasks_of("emulated:1", false);
  EXPECT_LT(3 * tasks_of("emulated:1", {}), 2 * by_tasks);
  EXPECT_GT(2 * tasks_of("emulated:2", {}), by_tasks);
}

TEST(RecordedIterations, StepsGiveTheBitsOfOneCall) {
  const auto a = grid_matrix<double>({10, 10, 10});
  const auto b = random_vector<double>(a.rows, 6);
  Engine engine({"emulated:1"});
  const Solver solver(engine, a.view());
  std::vector<double> whole(b.size()), stepped(b.size());
  const SolveResult result = solver.cg(b.data(), whole.data());
  Solve solve = solver.begin_cg(b.data(), stepped.data());
  while (!solve.advance(3)) {
  }
  EXPECT_EQ(solve.finish().iterations, result.iterations);
  EXPECT_TRUE(same_bits(whole, stepped));
}

TEST(RecordedIterations, BreakdownsLeaveTheXOfTasks) {
  const auto indefinite = grid_matrix<double>({8, 8, 8}, -3);
  auto lacking = grid_matrix<double>({8, 8, 8});
  lacking.values[100] = std::numeric_limits<double>::quiet_NaN();
  const auto b = random_vector<double>(indefinite.rows, 3);
  for (const auto* const a : {&std::as_const(indefinite), &std::as_const(lacking)}) {
    std::vector<double> x(b.size()), y(b.size());
    Engine engine({"emulated:1"});
    SolverOptions options;
    options.recorded = false;
    const SolveResult by_tasks = Solver(engine, a->view(), options).cg(b.data(), x.data());
    options.recorded = true;
    const SolveResult recorded = Solver(engine, a->view(), options).cg(b.data(), y.data());
    EXPECT_EQ(by_tasks.reason, recorded.reason);
    EXPECT_NE(recorded.reason, StopReason::converged);
    EXPECT_EQ(by_tasks.iterations, recorded.iterations);
    EXPECT_TRUE(same_bits(x, y));
  }
}

TEST(RecordedIterations, AreCancelledByTheProgressFunction) {
  Engine engine({"emulated:1"});
  expect_cancelled_and_usable(engine);
}

using RecordedIterationsLost = Losses;

TEST_F(RecordedIterationsLost, BeginAgainOnTheHostAfterALoss) {
  const auto a = grid_matrix<double>({12, 12, 12});
  const auto b = random_vector<double>(a.rows, 3);
  for (const std::uint64_t after : {10, 14, 20, 60}) {
    SCOPED_TRACE("after " + std::to_string(after));
    Engine engine = losing(1, {{0, after}});
    SolverOptions options;
    options.recorded = true;
    options.records_ahead = after == 14 || after == 60;  // The loss comes while that is done.
    std::vector<double> x(b.size());
    const SolveResult result = Solver(engine, a.view(), options).cg(b.data(), x.data());
    EXPECT_EQ(result.reason, StopReason::converged);
    EXPECT_LE(residual(a, x, b), 1e-5 * norm(b));
    expect_lost(0);
  }
}

// All data of an iteration at once don't fit; those of each task do.
TEST(RecordedIterations, GiveWayToTasksWhereMemoryIsScarce) {
  const auto a = grid_matrix<double>({16, 15, 14}, 0.1);
  const auto b = random_vector<double>(a.rows, 6);
  std::vector<double> expected(b.size());
  Engine wide({"emulated:1"});
  const std::size_t matrix = Solver(wide, a.view()).plan().bytes.front();
  const SolveResult wanted = Solver(wide, a.view()).cg(b.data(), expected.data());
  // The matrix, p, q, r and x; the rest is small.
  const std::size_t least = matrix + 4 * static_cast<std::size_t>(a.rows) * sizeof(double);
  bool refused = false;
  for (std::size_t bytes = least; bytes < least + 16384 && !refused; bytes += 256) {
    const std::string devices = "emulated:1,memory=" + std::to_string(bytes);
    Engine engine({devices});
    SolverOptions options;
    options.parts = 1;
    std::vector<double> x(b.size());
    try {
      const SolveResult result = Solver(engine, a.view(), options).cg(b.data(), x.data());
      EXPECT_EQ(result.iterations, wanted.iterations);
      EXPECT_TRUE(same_bits(x, expected));
      options.recorded = true;
      x.assign(x.size(), 0);
      Solver(engine, a.view(), options).cg(b.data(), x.data());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::too_large) << error.what();
      refused |= options.recorded.has_value();
    }
  }
  EXPECT_TRUE(refused) << "no memory was too small for recorded iterations alone";
}

}  // namespace
}  // namespace quadriga::sparse::testing
