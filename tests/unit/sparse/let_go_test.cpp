// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/let_go_test.cpp: bodies that hold the last handle of a matrix or solver.
#include <quadriga/sparse.h>
#include <quadriga/sparse_vectors.h>

#include <atomic>
#include <optional>
#include <thread>

#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

/// -x'' on a line.
OwnedCsr<double> line_matrix(std::int64_t n) {
  OwnedCsr<double> a;
  a.cols = n;
  for (std::int64_t row = 0; row < n; ++row) {
    if (row > 0) a.add(row - 1, -1);
    a.add(row, 2);
    if (row + 1 < n) a.add(row + 1, -1);
    a.end_row();
  }
  return a;
}

/// One core, and one host thread beside a device: what follows the body waits for it.
class LetGoInBody : public ::testing::TestWithParam<const char*> {
 protected:
  /// Runs a body that starts to let go once `submit` has returned.
  void run(const std::function<void()>& submit, const std::function<void()>& let_go) {
    std::atomic<bool> submitted{false};
    Codelet codelet;
    codelet.name = "let_go";
    codelet.host_only = true;
    codelet.cpu = [&](const Arguments&) {
      while (!submitted.load()) std::this_thread::yield();
      let_go();
    };
    engine_.submit(codelet, {});
    submit();
    submitted.store(true);
    engine_.wait(60);
  }
  Engine engine_{{GetParam()}};
};

TEST_P(LetGoInBody, AMatrixWithWorkBehindTheBody) {
  const OwnedCsr<double> a = line_matrix(400);
  for (int round = 0; round < 3; ++round) {
    std::optional<Matrix> matrix(std::in_place, engine_, a.view());
    const std::vector<double> ones(static_cast<std::size_t>(a.rows), 1);
    std::optional<Vector> y(matrix->vector(ones.data()));
    run([&] { y = *matrix * *y; },
        [&] {
          y.reset();
          matrix.reset();
        });
  }
}

TEST_P(LetGoInBody, ASolverThatHasSolved) {
  const OwnedCsr<double> a = line_matrix(400);
  const std::vector<double> b(static_cast<std::size_t>(a.rows), 1);
  for (int round = 0; round < 3; ++round) {
    std::optional<Solver> solver(std::in_place, engine_, a.view());
    std::vector<double> x(b.size());
    solver->cg(b.data(), x.data(), 1);
    run([] {}, [&] { solver.reset(); });
  }
}

TEST_P(LetGoInBody, ASolveThatHasBegun) {
  const OwnedCsr<double> a = line_matrix(400);
  const std::vector<double> b(static_cast<std::size_t>(a.rows), 1);
  const Solver solver(engine_, a.view());
  for (int round = 0; round < 3; ++round) {
    std::vector<double> x(b.size());
    std::optional<Solve> solve(solver.begin_cg(b.data(), x.data(), 1));
    EXPECT_FALSE(solve->advance(2));
    run([] {}, [&] { solve.reset(); });
  }
  std::vector<double> x(b.size());
  EXPECT_EQ(solver.cg(b.data(), x.data(), 1).reason, StopReason::converged);
}

/// What follows the body reads the solve's x, so that its removal would wait for the body.
TEST_P(LetGoInBody, ASolveWhoseResultIsAwaited) {
  const OwnedCsr<double> a = line_matrix(400);
  const std::vector<double> b(static_cast<std::size_t>(a.rows), 1);
  const Solver solver(engine_, a.view());
  std::vector<double> x(b.size());
  const Data data = engine_.data(x.data(), a.rows, 1, a.rows, DType::float64, {});
  std::optional<Solve> solve(solver.begin_cg(b.data(), x.data(), 1));
  EXPECT_FALSE(solve->advance(2));
  Codelet codelet;
  codelet.name = "let_go_of_result";
  codelet.access = {Access::update};
  codelet.host_only = true;
  codelet.cpu = [&](const Arguments&) { solve.reset(); };
  engine_.submit(codelet, {{data, Access::update}});
  engine_.wait(60);
  engine_.remove(data);
}

INSTANTIATE_TEST_SUITE_P(Kinds, LetGoInBody, ::testing::Values("cpu:1", "emulated:1"));

}  // namespace
}  // namespace quadriga::sparse::testing
