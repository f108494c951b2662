// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/identity_test.cpp: results to the bit the same on all devices, policies and
// clocks.
#include "unit/linalg/matrices.h"

namespace quadriga::linalg::testing {
namespace {

constexpr const char* engines[] = {"cpu:1",
                                   "cpu:2",
                                   "emulated:1,memory=6KiB",
                                   "emulated:2,memory=7KiB",
                                   "emulated:3,memory=40KiB,peer=off",
                                   "emulated:2;cpu:1",
                                   "virtual:emulated:1,memory=30KiB",
                                   "virtual:emulated:3,memory=6KiB",
                                   "virtual:emulated:5,memory=1MiB,peer=1GB/s"};

/// Calls work(engine) on every kind of engine; what it returns must be the same to the bit.
template <class Work>
void expect_identical(Work&& work) {
  const auto reference = work(*make_engine("cpu:1"));
  for (const char* const devices : engines)
    for (const char* const policy : {"affinity", "steal"})
      EXPECT_TRUE(reference.same_bytes(work(*make_engine(devices, policy))))
          << devices << " " << policy;
}

const Options tiles_of_16 = [] {
  Options options;
  options.tile = 16;
  return options;
}();

TEST(Identity, Products) {
  const Array a = random_matrix(70, 90, DType::float64, Lay::columns, 1);
  const Array b = random_matrix(90, 50, DType::float64, Lay::rows, 2);
  expect_identical([&](Engine& engine) {
    Array c = random_matrix(70, 50, DType::float64, Lay::columns, 3);
    matmul(engine, 1, a.view(), Op::none, b.view(), Op::none, 1, c.view(), tiles_of_16);
    return c;
  });
}

TEST(Identity, CholeskyAndSolutions) {
  const Array a = spd_matrix(101, DType::float64, Lay::columns, 4);
  expect_identical([&](Engine& engine) {
    Array out = a;
    cholesky(engine, out.view(), out.view(), Uplo::lower, Other::zero, tiles_of_16);
    return out;
  });
  expect_identical([&](Engine& engine) {
    Array b = random_matrix(101, 20, DType::float64, Lay::columns, 5);
    cho_factor(engine, a.view(), {}, tiles_of_16).solve(b.view());
    return b;
  });
  expect_identical([&](Engine& engine) {
    Array diagonal(101, 1, DType::float64);
    const Factor factor = cho_factor(engine, a.view(), {}, tiles_of_16);
    factor.inverse_diagonal({static_cast<double*>(diagonal.view().data), 101});
    return diagonal;
  });
}

TEST(Identity, RankUpdatesAndTriangularSystems) {
  const Array a = random_matrix(70, 60, DType::float64, Lay::reversed, 6);
  expect_identical([&](Engine& engine) {
    Array c = random_matrix(70, 70, DType::float64, Lay::rows, 7);
    syrk(engine, 1, a.view(), Op::none, 1, c.view(), Uplo::upper, tiles_of_16);
    return c;
  });
  const Array t = spd_matrix(70, DType::float64, Lay::every_other, 8);
  expect_identical([&](Engine& engine) {
    Array b = random_matrix(70, 40, DType::float64, Lay::columns, 9);
    solve_triangular(engine, t.view(), Uplo::upper, Op::transpose, false, b.view(), tiles_of_16);
    return b;
  });
}

}  // namespace
}  // namespace quadriga::linalg::testing
