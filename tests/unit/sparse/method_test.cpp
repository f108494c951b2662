// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/method_test.cpp: single-reduction and pipelined conjugate gradients beside
// classic ones.
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "sanitized.h"
#include "sparse/method.h"
#include "unit/sparse/losses.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

constexpr CgMethod others[] = {CgMethod::single_reduction, CgMethod::pipelined};

/// How a solver is made: on so many emulated devices, recorded or by tasks.
struct Way {
  CgMethod method = CgMethod::classic;
  int devices = 1;
  bool recorded = false;
  bool virtual_clock = false;
  CopyRoute route = CopyRoute::automatic;
};

struct Wanted {
  double rtol = 1e-10;
  std::int64_t columns = 1;
  Precondition precondition = Precondition::jacobi;
  std::int64_t iterations = -1;
  int calls = 1;
};

template <class T>
struct Solved {
  SolveResult result;
  std::vector<T> x;
};

EngineOptions engine_of(const Way& way) {
  EngineOptions options;
  options.machine = Machine::parse("emulated:" + std::to_string(way.devices));
  options.virtual_clock = way.virtual_clock;
  for (const char* const rate : {"bytes", "flops"})
    options.machine->kernels[rate]["emulated"][1000] = 1e-3;
  return options;
}

template <class T>
Solved<T> solve(const Way& way, const OwnedCsr<T, std::int64_t>& a, const std::vector<T>& b,
                const Wanted& wanted = {}) {
  Engine engine(engine_of(way));
  SolverOptions options;
  options.precondition = wanted.precondition;
  options.recorded = way.recorded;
  options.method = way.method;
  options.route = way.route;
  const Solver solver(engine, a.view(), options);
  EXPECT_EQ(solver.plan().method, way.method);
  SolveOptions how;
  how.rtol = wanted.rtol;
  how.iterations = wanted.iterations;
  Solved<T> solved;
  for (int call = 0; call < wanted.calls; ++call) {  // The second has the data of the first.
    solved.x.assign(b.size(), T{});
    solved.result = solver.cg(b.data(), solved.x.data(), wanted.columns, how);
  }
  return solved;
}

template <class T>
void expect_bits_of_one_device(CgMethod method, const Wanted& wanted) {
  SCOPED_TRACE(name(method));
  const auto a = grid_matrix<T>({16, 8, 8}, 0.1);
  const auto b = random_vector<T>(a.rows * wanted.columns, 6);
  const Solved<T> classic = solve<T>({CgMethod::classic}, a, b, wanted);
  const Solved<T> alone = solve<T>({method}, a, b, wanted);
  EXPECT_EQ(alone.result.reason, StopReason::converged);
  EXPECT_EQ(alone.result.method, method);
  EXPECT_NEAR(static_cast<double>(alone.result.iterations),
              static_cast<double>(classic.result.iterations), 3);
  EXPECT_NEAR(alone.result.conditions[0] / classic.result.conditions[0], 1, 0.05);
  expect_same(alone, solve<T>({method, 1, true}, a, b, wanted));
  expect_same(alone, solve<T>({method, 2, true}, a, b, wanted));
  expect_same(alone, solve<T>({method, 3, false}, a, b, wanted));
  expect_same(alone, solve<T>({method, 4, true}, a, b, wanted));
  expect_same(alone, solve<T>({method, 3, false, true}, a, b, wanted));
  expect_same(alone, solve<T>({method, 3, false, false, CopyRoute::host}, a, b, wanted));
}

TEST(CgMethods, HaveTheBitsOfOneDevice) {
  for (const CgMethod method : others) {
    expect_bits_of_one_device<double>(method, {1e-10, 1, Precondition::jacobi, -1, 2});
    expect_bits_of_one_device<double>(method, {1e-10, 1, Precondition::none});
    expect_bits_of_one_device<double>(method, {1e-10, 5, Precondition::block_jacobi});
    if (is_sanitized && method != CgMethod::pipelined) continue;  // No type has code of its own.
    expect_bits_of_one_device<float>(method, {1e-5});
    expect_bits_of_one_device<std::complex<float>>(method, {1e-5});
    expect_bits_of_one_device<std::complex<double>>(method, {1e-10, 3});
  }
}

// Each column is left alone once it has ended, or until its residual is replaced.
TEST(CgMethods, ColumnsHaveTheBitsThatTheyHaveAlone) {
  const auto a = grid_matrix<double>({14, 14, 14});
  const std::int64_t columns = 3;
  auto b = random_vector<double>(a.rows * columns, 6);
  for (std::int64_t row = 0; row < a.rows; ++row) b[row * columns + 1] = row == 7 ? 1 : 0;
  for (const CgMethod method : others) {
    SCOPED_TRACE(name(method));
    const Solved<double> all = solve<double>({method}, a, b, {1e-10, columns});
    for (std::int64_t c = 0; c < columns; ++c) {
      std::vector<double> own(static_cast<std::size_t>(a.rows)), x(own.size());
      for (std::int64_t row = 0; row < a.rows; ++row) own[row] = b[row * columns + c];
      const Solved<double> alone = solve<double>({method}, a, own);
      for (std::int64_t row = 0; row < a.rows; ++row) x[row] = all.x[row * columns + c];
      EXPECT_TRUE(same_bits(alone.x, x)) << "column " << c;
    }
  }
}

/// A grid's Laplacian, squared.
OwnedCsr<double, std::int64_t> biharmonic(const BoxGrid& grid) {
  const auto a = grid_matrix<double>(grid);
  OwnedCsr<double, std::int64_t> squared;
  squared.cols = a.rows;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    for (auto at = a.offsets[row]; at < a.offsets[row + 1]; ++at)
      for (auto next = a.offsets[a.columns[at]]; next < a.offsets[a.columns[at] + 1]; ++next)
        squared.add(a.columns[next], a.values[at] * a.values[next]);
    squared.end_row();
  }
  return squared;
}

/// The Laplacian of a line, its rows and columns scaled by powers of two up to 2^most.
OwnedCsr<double, std::int64_t> ill_conditioned(std::int64_t n, int most) {
  auto a = grid_matrix<double>({n, 1, 1});
  const auto scale = [=](std::int64_t row) {
    return std::ldexp(1.0, static_cast<int>(row * 37 % (most + 1)));
  };
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (auto at = a.offsets[row]; at < a.offsets[row + 1]; ++at)
      a.values[at] *= scale(row) * scale(a.columns[at]);
  return a;
}

// The recurrences of pipelined iterations drift: without replacements they stop short of this.
TEST(CgMethods, ReachATrueResidualWhereAIsIllConditioned) {
  for (const auto& a : {biharmonic({26, 26, 1}), grid_matrix<double>({1000, 1, 1})}) {
    const auto b = random_vector<double>(a.rows, 6);
    const Solved<double> classic = solve<double>({CgMethod::classic, 1, true}, a, b);
    ASSERT_EQ(classic.result.reason, StopReason::converged);
    EXPECT_GT(classic.result.conditions[0], 5e4);
    for (const CgMethod method : others) {
      SCOPED_TRACE(std::string(name(method)) + " n " + std::to_string(a.rows));
      const Solved<double> solved = solve<double>({method, 1, true}, a, b);
      EXPECT_EQ(solved.result.reason, StopReason::converged);
      EXPECT_EQ(solved.result.method, method);
      EXPECT_LE(residual(a, solved.x, b), 1e-10 * norm(b));
      if (method == CgMethod::pipelined) {
        EXPECT_GT(solved.result.replacements, 1);
      }
      EXPECT_NEAR(static_cast<double>(solved.result.iterations) /
                      static_cast<double>(classic.result.iterations),
                  1, 0.03);
      expect_same(solved, solve<double>({method, 2, true}, a, b));
    }
  }
}

TEST(CgMethods, NoticeFaultsAsClassicIterationsDo) {
  const auto indefinite = grid_matrix<double>({8, 8, 8}, -3);
  const auto negative = grid_matrix<double>({8, 8, 8}, -20);
  auto lacking = grid_matrix<double>({8, 8, 8});
  lacking.values[100] = std::numeric_limits<double>::quiet_NaN();
  auto infinite = grid_matrix<double>({8, 8, 8});
  infinite.values[200] = std::numeric_limits<double>::infinity();
  const auto b = random_vector<double>(indefinite.rows, 3);
  const Wanted wanted{1e-10, 1, Precondition::none};
  for (const auto* const a :
       {&indefinite, &negative, &std::as_const(lacking), &std::as_const(infinite)}) {
    const Solved<double> classic = solve<double>({CgMethod::classic}, *a, b, wanted);
    EXPECT_NE(classic.result.reason, StopReason::converged);
    for (const CgMethod method : others)
      for (const bool recorded : {false, true})
        for (const int devices : {1, 3})
          for (const bool virtual_clock : {false, true}) {
            if (recorded && virtual_clock) continue;
            SCOPED_TRACE(std::string(name(method)) + (recorded ? " recorded" : " by tasks") +
                         " on " + std::to_string(devices));
            const Solved<double> solved =
                solve<double>({method, devices, recorded, virtual_clock}, *a, b, wanted);
            EXPECT_EQ(solved.result.reason, classic.result.reason);
            EXPECT_EQ(solved.result.iterations, classic.result.iterations);
            for (std::size_t i = 0; i < b.size(); ++i)
              ASSERT_NEAR(solved.x[i], classic.x[i], 1e-6 * norm(classic.x) + 1e-300) << i;
          }
  }
}

TEST(CgMethods, NoticeAnIndefiniteM) {
  const auto a = grid_matrix<double>({6, 6, 6});
  const auto b = random_vector<double>(a.rows, 3);
  std::vector<double> diagonal(b.size(), 1);
  for (std::size_t i = 0; i < diagonal.size(); i += 3) diagonal[i] = -2;
  for (const CgMethod method :
       {CgMethod::classic, CgMethod::single_reduction, CgMethod::pipelined}) {
    Engine engine({"emulated:2"});
    SolverOptions options;
    options.method = method;
    options.precondition = Precondition::diagonal;
    options.diagonal = diagonal.data();
    std::vector<double> x(b.size());
    const SolveResult result = Solver(engine, a.view(), options).cg(b.data(), x.data());
    EXPECT_EQ(result.reason, StopReason::indefinite_preconditioner) << name(method);
  }
}

// Below what rounding allows, classic iterations go on, and end as they always do.
TEST(CgMethods, GiveWayToClassicIterationsAtTheLimitOfRounding) {
  const auto a = ill_conditioned(60, 8);
  const auto b = random_vector<double>(a.rows, 6);
  for (const CgMethod method : others) {
    SCOPED_TRACE(name(method));
    const Solved<double> solved = solve<double>({method}, a, b, {1e-30});
    EXPECT_EQ(solved.result.method, CgMethod::classic);
    EXPECT_TRUE(solved.result.reason == StopReason::stagnated ||
                solved.result.reason == StopReason::iterations)
        << name(solved.result.reason);
    expect_same(solved, solve<double>({method, 3, false}, a, b, {1e-30}));
  }
}

TEST(CgMethods, StepsGiveTheBitsOfOneCall) {
  const auto a = grid_matrix<double>({10, 10, 10});
  const auto b = random_vector<double>(a.rows, 6);
  for (const CgMethod method : others) {
    Engine engine({"emulated:2"});
    SolverOptions options;
    options.method = method;
    const Solver solver(engine, a.view(), options);
    std::vector<double> whole(b.size()), stepped(b.size());
    const SolveResult result = solver.cg(b.data(), whole.data());
    Solve solve = solver.begin_cg(b.data(), stepped.data());
    while (!solve.advance(1)) {
    }
    EXPECT_EQ(solve.finish().iterations, result.iterations);
    EXPECT_TRUE(same_bits(whole, stepped));
  }
}

TEST(CgMethods, EndAtTheLimitOfIterations) {
  const auto a = grid_matrix<double>({12, 12, 12});
  const auto b = random_vector<double>(a.rows, 6);
  for (const CgMethod method : others) {
    const Solved<double> solved =
        solve<double>({method}, a, b, {1e-12, 1, Precondition::jacobi, 7});
    EXPECT_EQ(solved.result.reason, StopReason::iterations);
    EXPECT_EQ(solved.result.iterations, 7);
    EXPECT_NEAR(solved.result.true_residuals[0] / residual(a, solved.x, b), 1, 1e-6);
  }
}

TEST(CgMethods, AreCancelledByTheProgressFunction) {
  for (const CgMethod method : others) {
    Engine engine({"emulated:2"});
    SolverOptions options;
    options.method = method;
    expect_cancelled_and_usable(engine, options);
  }
}

using CgMethodsLost = Losses;

TEST_F(CgMethodsLost, BeginAgainAfterALoss) {
  const auto a = grid_matrix<double>({12, 12, 12});
  const auto b = random_vector<double>(a.rows, 3);
  for (const CgMethod method : others)
    for (const std::uint64_t after : {14, 30}) {
      SCOPED_TRACE(std::string(name(method)) + " after " + std::to_string(after));
      Engine engine = losing(2, {{0, after}});
      SolverOptions options;
      options.method = method;
      std::vector<double> x(b.size());
      const SolveResult result = Solver(engine, a.view(), options).cg(b.data(), x.data());
      EXPECT_EQ(result.reason, StopReason::converged);
      EXPECT_LE(residual(a, x, b), 1e-5 * norm(b));
      expect_lost(0);
    }
}

/// exp(-(x - y)^2 / 0.01) of `n` points of a line, all but singular.
OwnedCsr<double, std::int64_t> kernel_matrix(std::int64_t n) {
  OwnedCsr<double, std::int64_t> a;
  a.cols = n;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const double distance = static_cast<double>(i - j) / static_cast<double>(n - 1);
      a.add(j, std::exp(-100 * distance * distance) + (i == j ? 1e-6 : 0));
    }
    a.end_row();
  }
  return a;
}

// A residual that is computed anew early spoils the directions of such a system.
TEST(CgMethods, SingleReductionNeedsHardlyMoreIterationsOfAnIllConditionedSystem) {
  const auto a = kernel_matrix(200);
  const auto b = random_vector<double>(a.rows, 3);
  for (const double rtol : {1e-5, 1e-8}) {
    const Wanted wanted{.rtol = rtol, .precondition = Precondition::none, .iterations = 4000};
    const auto classic = solve<double>({CgMethod::classic, 1, true}, a, b, wanted);
    const auto single = solve<double>({CgMethod::single_reduction, 1, true}, a, b, wanted);
    ASSERT_EQ(classic.result.reason, StopReason::converged);
    EXPECT_EQ(single.result.reason, StopReason::converged);
    EXPECT_EQ(single.result.method, CgMethod::single_reduction);
    EXPECT_LE(static_cast<double>(single.result.iterations),
              1.3 * static_cast<double>(classic.result.iterations));
  }
}

TEST(CgMethods, TakeAnyLimitOfIterations) {
  const auto a = grid_matrix<double>({300, 1, 1});
  const auto b = random_vector<double>(a.rows, 3);
  for (const CgMethod method :
       {CgMethod::classic, CgMethod::single_reduction, CgMethod::pipelined}) {
    Engine engine(engine_of({}));
    SolverOptions options;
    options.method = method;
    const Solver solver(engine, a.view(), options);
    std::vector<double> x(b.size());
    SolveOptions limits;
    limits.iterations = INT64_MAX;
    Solve steps = solver.begin_cg(b.data(), x.data(), 1, limits);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(steps.advance(1));
    EXPECT_EQ(steps.finish().reason, StopReason::converged);
  }
}

TEST(CgMethods, AreChosenByTheFiguresOfOneDevice) {
  const auto chosen = [](const char* machine, std::int64_t points, Precondition precondition) {
    EngineOptions of;
    of.machine = Machine::parse(machine);
    for (const char* const rate : {"bytes", "flops"})
      of.machine->kernels[rate]["emulated"][1000] = 1e-3;  // 1e12 a second
    of.machine->launch_seconds = 5e-6;
    Engine engine(std::move(of));
    const auto a = grid_matrix<double>({points, points, points});
    SolverOptions options;
    options.precondition = precondition;
    const PlanReport plan = Solver(engine, a.view(), options).plan();
    EXPECT_FALSE(plan.method_reason.empty());
    return plan.method;
  };
  for (const char* const devices : {"emulated:1", "emulated:3"}) {
    EXPECT_EQ(chosen(devices, 20, Precondition::jacobi), CgMethod::single_reduction);
    // Two vectors more: 11 us.
    EXPECT_EQ(chosen(devices, 90, Precondition::jacobi), CgMethod::classic);
    EXPECT_EQ(chosen(devices, 20, Precondition::chebyshev), CgMethod::classic);
  }
  EXPECT_EQ(chosen("cpu:2", 20, Precondition::jacobi), CgMethod::classic);
}

TEST(CgMethods, AreChosenOnGpusByTheMachinesFigures) {
  for (const std::string described : {"h200x1", "h200x4"}) {
    Machine machine =
        Machine::parse("machine=" QUADRIGA_SOURCE_DIR "/machines/" + described + ".json");
    for (Device& each : machine.devices)
      if (each.kind == DeviceKind::emulated) each.kind = DeviceKind::cuda;
    const auto chosen = [&](std::int64_t points, std::int64_t stencil) {
      const std::int64_t rows = points * points * points;
      return choose_method(machine,
                           {rows, DType::float64, 12.0 * static_cast<double>(stencil * rows)},
                           CgMethod::automatic, false);
    };
    // A launch of three is 2.7 of 13 us; two vectors of 0.9 MB are 0.4.
    EXPECT_EQ(chosen(48, 7).method, CgMethod::single_reduction);
    EXPECT_NE(chosen(48, 7).reason.find("single_reduction"), std::string::npos);
    // Two vectors are 8 us.
    EXPECT_EQ(chosen(128, 27).method, CgMethod::classic);
    // It gains 1 us of 49: less than a model of bytes and launches tells apart.
    EXPECT_EQ(chosen(78, 27).method, CgMethod::classic) << chosen(78, 27).reason;
    // What doesn't fit crosses the link: two vectors more.
    Machine small = machine;
    for (Device& each : small.devices) each.memory_bytes = std::size_t{2} << 20;
    const MethodShape shape{48 * 48 * 48, DType::float64, 12.0 * 7 * 48 * 48 * 48};
    EXPECT_EQ(choose_method(small, shape, CgMethod::automatic, false).method, CgMethod::classic);
    EXPECT_EQ(choose_method(machine, shape, CgMethod::automatic, false).method,
              CgMethod::single_reduction);
    // Who needs the same bits under any limit of memory names the method.
    for (const CgMethod each : others)
      EXPECT_EQ(choose_method(small, shape, each, false).method, each);
    // Without launches nothing is left to gain.
    machine.launch_seconds = 0;
    EXPECT_EQ(chosen(48, 7).method, CgMethod::classic);
  }
}

TEST(CgMethods, AreChosenByTheNumberOfDevicesWhereItMayDecide) {
  Machine machine = Machine::parse("machine=" QUADRIGA_SOURCE_DIR "/machines/h200x4.json");
  std::vector<DeviceId> all;
  for (std::size_t i = 0; i < machine.devices.size(); ++i)
    if (machine.devices[i].kind == DeviceKind::emulated) {
      machine.devices[i].kind = DeviceKind::cuda;
      all.push_back(static_cast<DeviceId>(i));
    }
  ASSERT_EQ(all.size(), 4u);
  const auto chosen = [&](std::int64_t points, std::int64_t stencil, std::size_t devices) {
    const std::int64_t rows = points * points * points;
    return choose_method(machine,
                         {rows, DType::float64, 12.0 * static_cast<double>(stencil * rows)},
                         CgMethod::automatic, false, std::span(all).first(devices));
  };
  // One device waits for nobody: what it is given alone.
  EXPECT_EQ(chosen(48, 7, 1).method, CgMethod::single_reduction);
  EXPECT_EQ(chosen(128, 27, 1).method, CgMethod::classic);
  // A quarter of eight vectors of 0.9 MB costs less than a round trip of the sums.
  EXPECT_EQ(chosen(48, 7, 4).method, CgMethod::pipelined) << chosen(48, 7, 4).reason;
  EXPECT_NE(chosen(48, 7, 4).reason.find("4 devices"), std::string::npos);
  // Of eight vectors of 1 GB not.
  EXPECT_EQ(chosen(512, 27, 4).method, CgMethod::classic) << chosen(512, 27, 4).reason;
  // Without latencies there is nothing to hide.
  for (Link& each : machine.links) each.latency_seconds = 0;
  EXPECT_NE(chosen(48, 7, 4).method, CgMethod::pipelined) << chosen(48, 7, 4).reason;
}

TEST(CgMethods, DependOnTheNumberOfDevicesOnRequestOnly) {
  const auto a = grid_matrix<double>({11, 10, 12}, 0.1);
  const auto b = random_vector<double>(a.rows, 6);
  for (const bool fast : {false, true}) {
    EngineOptions given = engine_of({CgMethod::classic, 4});
    // A byte a picosecond, and a launch that costs nothing: vectors are free, sums aren't.
    given.machine->kernels["bytes"]["emulated"] = {{1000, 1e-9}};
    for (Link& each : given.machine->links) each.latency_seconds = 1e-3;
    Engine engine(given);
    SolverOptions options;
    options.precondition = Precondition::jacobi;
    options.fast = fast;
    options.parts = 4;
    const Solver solver(engine, a.view(), options);
    EXPECT_EQ(solver.plan().method, fast ? CgMethod::pipelined : CgMethod::classic)
        << solver.plan().method_reason;
    std::vector<double> x(b.size());
    SolveOptions wanted;
    wanted.rtol = 1e-9;
    EXPECT_EQ(solver.cg(b.data(), x.data(), 1, wanted).reason, StopReason::converged);
    EXPECT_LE(residual(a, x, b), 1.001e-9 * norm(b));
  }
}

TEST(CgMethods, StayClassicWhereFiguresSayNothing) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const MethodShape shape{48 * 48 * 48, DType::float64, 12.0 * 7 * 48 * 48 * 48};
  Machine machine = Machine::parse("emulated:2");
  for (const double seconds : {none, 0.0, -1e-3, std::numeric_limits<double>::infinity()}) {
    for (const char* const rate : {"bytes", "flops"})
      machine.kernels[rate]["emulated"] = {{1000, seconds}, {2000, seconds}};
    for (const double launch : {none, 0.0}) {
      machine.launch_seconds = launch;
      EXPECT_EQ(choose_method(machine, shape, CgMethod::automatic, false).method, CgMethod::classic)
          << seconds << ' ' << launch;
    }
  }
}

TEST(CgMethods, RefuseAnMOfSeveralSteps) {
  const auto a = grid_matrix<double>({6, 6, 6});
  Engine engine({"emulated:1"});
  SolverOptions options;
  options.method = CgMethod::pipelined;
  options.precondition = Precondition::chebyshev;
  EXPECT_THROW(Solver(engine, a.view(), options), Error);
}

TEST(CgMethods, RunOnCores) {
  const auto a = grid_matrix<double>({12, 12, 12});
  const auto b = random_vector<double>(a.rows, 3);
  for (const CgMethod method : others) {
    Engine engine({"cpu:2"});
    SolverOptions options;
    options.method = method;
    std::vector<double> x(b.size());
    const SolveResult result = Solver(engine, a.view(), options).cg(b.data(), x.data());
    EXPECT_EQ(result.reason, StopReason::converged);
    EXPECT_LE(residual(a, x, b), 1e-5 * norm(b));
  }
}

}  // namespace
}  // namespace quadriga::sparse::testing
