// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/lost_device_test.cpp: a device is lost during a solve, which begins again on
// the others.
#include <quadriga/sparse_vectors.h>

#include "base/log.h"
#include "device/factory.h"
#include "engine/engine_access.h"
#include "sparse/part_data.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

class LostDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_sink([this](LogLevel, std::string_view message) { said_ += message; });
  }
  void TearDown() override { set_log_sink({}); }
  std::string said_;
};

WrappedOptions losing(std::vector<FaultPlan::Loss> losses) {
  WrappedOptions options;
  options.devices = "emulated:3,memory=16MiB";
  options.wrap_backend = [losses](std::unique_ptr<Backend> backend) {
    return make_faulty_backend(std::move(backend), {.losses = losses});
  };
  return options;
}

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
    said_.clear();
    Engine engine(EngineAccess::make(losing({{1, after}})));
    const Solver solver(engine, a.view());
    std::vector<double> x(b.size());
    const SolveResult result = solver.cg(b.data(), x.data());
    EXPECT_EQ(result.reason, StopReason::converged);
    EXPECT_TRUE(same_bits(x, expected));
    EXPECT_NE(said_.find("emulated1"), std::string::npos) << "no device was lost";
  }
}

TEST_F(LostDevice, WithoutAnyTheHostSolves) {
  const auto a = grid_matrix<double>({12, 12, 12});
  const auto b = random_vector<double>(a.rows, 3);
  Engine engine(EngineAccess::make(losing({{0, 100}, {1, 120}, {2, 140}})));
  const Solver solver(engine, a.view());
  std::vector<double> x(b.size());
  EXPECT_EQ(solver.cg(b.data(), x.data()).reason, StopReason::converged);
  EXPECT_LE(residual(a, x, b), 1e-5 * norm(b));
  for (const char* const device : {"emulated0", "emulated1", "emulated2"})
    EXPECT_NE(said_.find(device), std::string::npos) << device << " was not lost";
}

TEST_F(LostDevice, IsToldToWhoReadsAScalar) {
  const auto a = grid_matrix<double>({12, 12, 12});
  const auto b = random_vector<double>(a.rows, 3);
  for (const std::uint64_t after : {40, 150}) {
    SCOPED_TRACE("after " + std::to_string(after));
    Engine engine(EngineAccess::make(losing({{1, after}})));
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
