// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/joint_test.cpp: iterations of several devices as one program beside iterations
// as tasks.
#include <cmath>
#include <limits>
#include <map>
#include <thread>
#include <utility>

#include "sanitized.h"
#include "unit/sparse/losses.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

/// How a solver is made: on so many emulated devices, recorded or by tasks.
struct Way {
  int devices = 1;
  bool recorded = true;
  Exchange exchange = Exchange::automatic;
  bool virtual_clock = false;
};

template <class T>
struct Solved {
  SolveResult result;
  std::vector<T> x;
  std::uint64_t tasks = 0;
};

template <class T>
Solved<T> solve(const Way& way, const OwnedCsr<T, std::int64_t>& a, const std::vector<T>& b,
                std::int64_t columns, double rtol) {
  EngineOptions engine_options;
  engine_options.machine = Machine::parse("emulated:" + std::to_string(way.devices));
  engine_options.virtual_clock = way.virtual_clock;
  for (const char* const rate : {"bytes", "flops"})
    engine_options.machine->kernels[rate]["emulated"][1000] = 1e-3;
  Engine engine(std::move(engine_options));
  SolverOptions options;
  options.precondition = Precondition::jacobi;
  options.recorded = way.recorded;
  options.exchange = way.exchange;
  const Solver solver(engine, a.view(), options);
  EXPECT_EQ(solver.plan().devices.size(), static_cast<std::size_t>(way.devices));
  SolveOptions wanted;
  wanted.rtol = rtol;
  Solved<T> solved;
  for (int call = 0; call < 2; ++call) {  // The second has the data of the first.
    solved.x.assign(b.size(), T{});
    solved.result = solver.cg(b.data(), solved.x.data(), columns, wanted);
  }
  for (const DeviceCounters& each : engine.counters().devices) solved.tasks += each.tasks;
  return solved;
}

template <class T>
void expect_bits_of_one_device(const OwnedCsr<T, std::int64_t>& a, std::int64_t columns,
                               double rtol) {
  const auto b = random_vector<T>(a.rows * columns, 6);
  const Solved<T> alone = solve<T>({1, false}, a, b, columns, rtol);
  EXPECT_EQ(alone.result.reason, StopReason::converged);
  EXPECT_GT(alone.result.iterations, 10);
  for (const int devices : {2, 3, 4}) {
    if (is_sanitized && devices == 2) continue;
    SCOPED_TRACE(std::to_string(devices) + " devices");
    const Solved<T> by_tasks = solve<T>({devices, false}, a, b, columns, rtol);
    const Solved<T> together = solve<T>({devices, true}, a, b, columns, rtol);
    expect_same(alone, by_tasks);
    expect_same(alone, together);
    // However slow the machine, and short its batches: of each iteration a task a part and two for
    // scalars are saved, and at most one for a look is added. Two calls.
    const auto iterations = static_cast<std::uint64_t>(alone.result.iterations);
    EXPECT_LT(together.tasks + 2 * iterations, by_tasks.tasks) << "nothing was recorded";
  }
}

/// Symmetric, with neighbours that are far apart: each part needs something of all others.
OwnedCsr<double, std::int64_t> scattered_matrix(std::int64_t n) {
  std::vector<std::map<std::int64_t, double>> rows(static_cast<std::size_t>(n));
  std::mt19937_64 random(5);
  for (std::int64_t row = 0; row < n; ++row) {
    rows[row][row] += 20;
    for (int i = 0; i < 4; ++i) {
      const auto column = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
      const double value = random_value<double>(random);
      rows[row][column] += value;
      rows[column][row] += value;
    }
  }
  OwnedCsr<double, std::int64_t> a;
  a.cols = n;
  for (const auto& row : rows) {
    for (const auto& [column, value] : row) a.add(column, value);
    a.end_row();
  }
  return a;
}

TEST(JointIterations, HaveTheBitsOfOneDevice) {
  expect_bits_of_one_device(grid_matrix<float>({11, 10, 19}, 0.1), 1, 1e-5);
  expect_bits_of_one_device(grid_matrix<double>({11, 10, 19}, 0.1), 1, 1e-10);
  expect_bits_of_one_device(grid_matrix<double>({11, 10, 19}, 0.1), 5, 1e-10);
  expect_bits_of_one_device(grid_matrix<std::complex<float>>({11, 10, 19}, 0.1), 1, 1e-5);
  expect_bits_of_one_device(grid_matrix<std::complex<double>>({11, 10, 19}, 0.1), 3, 1e-10);
}

TEST(JointIterations, HaveThemForScatteredRows) {
  expect_bits_of_one_device(scattered_matrix(2500), 1, 1e-12);
}

TEST(JointIterations, ExchangeWholeVectorsToo) {
  const auto a = grid_matrix<double>({11, 10, 19}, 0.1);
  const auto b = random_vector<double>(a.rows, 6);
  const Solved<double> alone = solve<double>({1, false}, a, b, 1, 1e-10);
  expect_same(alone, solve<double>({3, true, Exchange::whole}, a, b, 1, 1e-10));
}

TEST(JointIterations, AreTasksUnderTheVirtualClock) {
  const auto a = grid_matrix<double>({11, 10, 19}, 0.1);
  const auto b = random_vector<double>(a.rows, 6);
  const Solved<double> alone = solve<double>({1, false}, a, b, 1, 1e-10);
  expect_same(alone, solve<double>({2, true, Exchange::automatic, true}, a, b, 1, 1e-10));
}

TEST(JointIterations, StepsGiveTheBitsOfOneCall) {
  const auto a = grid_matrix<double>({10, 10, 20});
  const auto b = random_vector<double>(a.rows, 6);
  Engine engine({"emulated:2"});
  SolverOptions options;
  options.recorded = true;
  const Solver solver(engine, a.view(), options);
  std::vector<double> whole(b.size()), stepped(b.size());
  const SolveResult result = solver.cg(b.data(), whole.data());
  Solve solve = solver.begin_cg(b.data(), stepped.data());
  std::vector<double> last;
  while (!solve.advance(3)) {
    EXPECT_FALSE(same_bits(stepped, last)) << "x isn't at home";
    last = stepped;
  }
  EXPECT_EQ(solve.finish().iterations, result.iterations);
  EXPECT_TRUE(same_bits(whole, stepped));
}

TEST(JointIterations, BreakdownsLeaveTheXOfTasks) {
  const auto indefinite = grid_matrix<double>({8, 8, 18}, -3);
  auto lacking = grid_matrix<double>({8, 8, 18});
  lacking.values[100] = std::numeric_limits<double>::quiet_NaN();
  const auto b = random_vector<double>(indefinite.rows, 3);
  for (const auto* const a : {&std::as_const(indefinite), &std::as_const(lacking)}) {
    const Solved<double> together = solve<double>({2, true}, *a, b, 1, 1e-5);
    EXPECT_NE(together.result.reason, StopReason::converged);
    const Solved<double> by_tasks = solve<double>({2, false}, *a, b, 1, 1e-5);
    EXPECT_EQ(by_tasks.result.reason, together.result.reason);
    EXPECT_EQ(by_tasks.result.iterations, together.result.iterations);
    EXPECT_TRUE(same_bits(by_tasks.x, together.x));
  }
}

TEST(JointIterations, AreCancelledByTheProgressFunction) {
  Engine engine({"emulated:2"});
  SolverOptions options;
  options.recorded = true;
  expect_cancelled_and_usable(engine, options);
}

TEST(JointIterations, SolvesOfSeveralThreadsDontWaitForEachOtherForEver) {
  const auto a = grid_matrix<double>({10, 10, 20});
  const auto b = random_vector<double>(a.rows, 6);
  Engine engine({"emulated:3"});
  SolverOptions options;
  options.recorded = true;
  const Solver solver(engine, a.view(), options);
  std::vector<double> expected(b.size());
  solver.cg(b.data(), expected.data());
  std::vector<std::vector<double>> found(3, std::vector<double>(b.size()));
  std::vector<std::thread> threads;
  for (std::vector<double>& x : found) threads.emplace_back([&] { solver.cg(b.data(), x.data()); });
  for (std::thread& each : threads) each.join();
  for (const std::vector<double>& x : found) EXPECT_TRUE(same_bits(x, expected));
}

using JointIterationsLost = Losses;

TEST_F(JointIterationsLost, BeginAgainOnTheOthersAfterALoss) {
  const auto a = grid_matrix<double>({12, 12, 12});
  const auto b = random_vector<double>(a.rows, 3);
  std::vector<double> expected(b.size());
  {
    Engine engine({"emulated:3"});
    Solver(engine, a.view()).cg(b.data(), expected.data());
  }
  for (const std::uint64_t after : {8, 10, 12, 16, 20, 24}) {
    SCOPED_TRACE("after " + std::to_string(after));
    Engine engine = losing(3, {{1, after}});
    SolverOptions options;
    options.recorded = true;
    options.records_ahead = after == 10 || after == 24;  // The loss comes while that is done.
    const Solver solver(engine, a.view(), options);
    for (int call = 0; call < 2; ++call) {
      std::vector<double> x(b.size());
      EXPECT_EQ(solver.cg(b.data(), x.data()).reason, StopReason::converged);
      EXPECT_TRUE(same_bits(x, expected));
    }
    expect_lost(1);
  }
}

TEST(JointIterations, NeedADeviceForEachPart) {
  const auto a = grid_matrix<double>({11, 10, 19});
  const auto refusal = [&](const char* devices, SolverOptions options) {
    Engine engine({devices});
    options.recorded = true;
    try {
      const Solver solver(engine, a.view(), options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      return std::string(error.what());
    }
    return std::string("none");
  };
  SolverOptions options;
  EXPECT_EQ(refusal("emulated:2", options), "none");
  EXPECT_NE(refusal("cpu:2", options).find("parts on cores"), std::string::npos);
  options.parts = 3;
  EXPECT_NE(refusal("emulated:2", options).find("3 parts on 2 devices"), std::string::npos);
  options = {};
  options.route = CopyRoute::host;
  EXPECT_NE(refusal("emulated:2", options).find("way of the host"), std::string::npos);
  options = {};
  options.precondition = Precondition::chebyshev;
  EXPECT_NE(refusal("emulated:2", options).find("blocks of rows"), std::string::npos);
}

}  // namespace
}  // namespace quadriga::sparse::testing
