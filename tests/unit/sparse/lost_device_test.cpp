// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/lost_device_test.cpp: a device is lost during a solve, which begins again on
// the others.
#include <quadriga/sparse_vectors.h>

#include "sparse/part_data.h"
#include "unit/sparse/losses.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

using LostDevice = Losses;

TEST_F(LostDevice, SolvesBeginAgainOnTheOthers) {
  const auto a = grid_matrix<double>({12, 12, 12});
  const auto b = random_vector<double>(a.rows, 3);
  std::vector<double> expected(b.size());
  {
    Engine engine({"emulated:3"});
    Solver(engine, a.view()).cg(b.data(), expected.data());
  }
  for (const std::uint64_t after : {12, 40, 150, 400}) {
    SCOPED_TRACE("after " + std::to_string(after));
    Engine engine = losing(3, {{1, after}});
    const Solver solver(engine, a.view());
    std::vector<double> x(b.size());
    const SolveResult result = solver.cg(b.data(), x.data());
    EXPECT_EQ(result.reason, StopReason::converged);
    EXPECT_TRUE(same_bits(x, expected));
    expect_lost(1);
  }
}

TEST_F(LostDevice, WithoutAnyTheHostSolves) {
  const auto a = grid_matrix<double>({12, 12, 12});
  const auto b = random_vector<double>(a.rows, 3);
  Engine engine = losing(3, {{0, 100}, {1, 120}, {2, 140}});
  const Solver solver(engine, a.view());
  std::vector<double> x(b.size());
  EXPECT_EQ(solver.cg(b.data(), x.data()).reason, StopReason::converged);
  EXPECT_LE(residual(a, x, b), 1e-5 * norm(b));
  for (const int device : {0, 1, 2}) expect_lost(device);
}

TEST_F(LostDevice, IsToldToWhoReadsAScalar) {
  const auto a = grid_matrix<double>({12, 12, 12});
  const auto b = random_vector<double>(a.rows, 3);
  for (const std::uint64_t after : {40, 150}) {
    SCOPED_TRACE("after " + std::to_string(after));
    Engine engine = losing(3, {{1, after}});
    const Matrix matrix(engine, a.view());
    try {
      Vector x = matrix.vector(b.data());
      for (int i = 0; i < 100; ++i) {
        x = matrix * x / 13;
        x += norm(x) * x;
      }
      x.copy_to(std::vector<double>(b.size()).data());
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::device_lost) << error.what();
    }
  }
}

TEST_F(LostDevice, IsWhatCancelledPartsEndWithAndNoOthers) {
  const auto code = [](Errc failed, bool is_lost) {
    try {
      std::rethrow_exception(with_loss(std::make_exception_ptr(Error(failed, "a")), is_lost));
    } catch (const Error& error) {
      return error.code();
    }
  };
  EXPECT_EQ(code(Errc::cancelled, true), Errc::device_lost);
  EXPECT_EQ(code(Errc::cancelled, false), Errc::cancelled);
  for (const Errc each : {Errc::task_failed, Errc::invalid_argument, Errc::io, Errc::device_lost})
    EXPECT_EQ(code(each, true), each);
  const auto foreign = std::make_exception_ptr(std::string("not an Error"));
  EXPECT_THROW(std::rethrow_exception(with_loss(foreign, true)), std::string);
}

TEST_F(LostDevice, LossesInFunctionsOfTheCallersAreTheirs) {
  const auto a = grid_matrix<double>({20, 20, 20});
  const auto b = random_vector<double>(a.rows, 3);
  Engine engine({"emulated:2"});
  const Solver solver(engine, a.view());
  std::vector<double> x(b.size());
  SolveOptions options;
  options.rtol = 0;
  int calls = 0;
  options.progress = [&](std::int64_t) -> bool {
    ++calls;
    fail(Errc::device_lost, "a device of another engine");
  };
  try {
    solver.cg(b.data(), x.data(), 1, options);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("another engine"), std::string::npos);
  }
  EXPECT_EQ(calls, 1) << "the solve began again";
}

}  // namespace
}  // namespace quadriga::sparse::testing
