// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/kinds_test.cpp: devices of a kind that nobody knew get parts of solvers by what
// their row says.
#include <gtest/gtest.h>
#include <quadriga/engine.h>
#include <quadriga/sparse.h>

#include "plain_kind.h"
#include "sparse/method.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

TEST(SparseKinds, HavePartsWhereTheVariantsOfSolversRun) {
  plain_kind();
  const auto a = grid_matrix<double>({12, 12, 12});
  const auto b = random_vector<double>(a.rows, 3);
  std::vector<double> expected(b.size());
  Engine emulated({.devices = "emulated:2"});
  Solver(emulated, a.view()).cg(b.data(), expected.data());
  Engine engine({.devices = "plain;cpu:1"});
  const Solver solver(engine, a.view());
  EXPECT_EQ(solver.plan().devices, (std::vector<DeviceId>{0, 1}));
  std::vector<double> x(b.size());
  EXPECT_EQ(solver.cg(b.data(), x.data()).reason, StopReason::converged);
  EXPECT_TRUE(same_bits(x, expected));
}

TEST(SparseKinds, WithVariantsOfTheirOwnLeaveSolversToTheCores) {
  polled_kind("foreign", std::size_t{1} << 20);
  const auto a = grid_matrix<double>({6, 6, 6});
  const auto b = random_vector<double>(a.rows, 3);
  Engine engine({.devices = "foreign;cpu:1"});
  const Solver solver(engine, a.view());
  EXPECT_EQ(solver.plan().devices, (std::vector<DeviceId>{no_device}));
  std::vector<double> x(b.size());
  EXPECT_EQ(solver.cg(b.data(), x.data()).reason, StopReason::converged);
}

}  // namespace
}  // namespace quadriga::sparse::testing
