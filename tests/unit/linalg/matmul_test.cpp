// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/matmul_test.cpp: products against their definition, on engines of all kinds.
#include "sanitized.h"
#include "unit/linalg/matrices.h"

#include <thread>

namespace quadriga::linalg::testing {
namespace {

constexpr Op all_ops[] = {Op::none, Op::transpose, Op::conjugate};

Array operand(std::int64_t rows, std::int64_t cols, Op op, DType dtype, Lay lay,
              std::uint64_t seed) {
  return op == Op::none ? random_matrix(rows, cols, dtype, lay, seed)
                        : random_matrix(cols, rows, dtype, lay, seed);
}

struct Case {
  DType dtype = DType::float64;
  Op op_a = Op::none;
  Op op_b = Op::none;
  Lay lay_a = Lay::columns;
  Lay lay_b = Lay::columns;
  Lay lay_c = Lay::columns;
  std::int64_t m = 37;
  std::int64_t n = 29;
  std::int64_t k = 41;
  Coefficient alpha{1.5};
  Coefficient beta{-0.5};
};

void check(Engine& engine, const Case& given, std::int64_t tile = 16) {
  const auto [dtype, op_a, op_b, lay_a, lay_b, lay_c, m, n, k, alpha, beta] = given;
  const Array a = operand(m, k, op_a, dtype, lay_a, 1);
  const Array b = operand(k, n, op_b, dtype, lay_b, 2);
  Array c = random_matrix(m, n, dtype, lay_c, 3);
  const Array before = c;
  Options options;
  options.tile = tile;
  matmul(engine, alpha, a.view(), op_a, b.view(), op_b, beta, c.view(), options);
  Array expected = before;
  const double bound = 8 * epsilon(dtype) * static_cast<double>(k + 4);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < m; ++i) {
      const Complex value = complex_of(alpha) * product(a, op_a, b, op_b, i, j) +
                            (beta == Coefficient(0) ? 0 : complex_of(beta) * before.get(i, j));
      ASSERT_LE(std::abs(c.get(i, j) - value), bound)
          << "element " << i << ", " << j << " type " << name(dtype) << " ops "
          << static_cast<int>(op_a) << static_cast<int>(op_b) << " layouts "
          << static_cast<int>(lay_a) << static_cast<int>(lay_b) << static_cast<int>(lay_c);
      expected.set(i, j, c.get(i, j));
    }
  }
  EXPECT_TRUE(c.same_bytes(expected)) << "what lies between the elements was touched";
}

TEST(Matmul, TypesAndOperationsInAllLayouts) {
  const auto engine = make_engine("cpu:2");
  for (const DType dtype : all_types)
    for (const Op op_a : all_ops)
      for (const Op op_b : all_ops)
        for (const Lay lay_c : all_layouts)
          check(*engine, {.dtype = dtype, .op_a = op_a, .op_b = op_b, .lay_c = lay_c});
}

TEST(Matmul, LayoutsOfInputs) {
  const auto engine = make_engine("cpu:2");
  for (const Lay lay_a : all_layouts)
    for (const Lay lay_b : all_layouts)
      for (const Lay lay_c : {Lay::columns, Lay::rows})
        check(*engine, {.dtype = DType::complex128,
                        .op_a = Op::conjugate,
                        .lay_a = lay_a,
                        .lay_b = lay_b,
                        .lay_c = lay_c});
}

TEST(Matmul, DevicesOfThreeTiles) {
  for (const char* const devices :
       {"emulated:2,memory=6KiB", "emulated:3,memory=7KiB,peer=off",
        "virtual:emulated:3,memory=6KiB", "virtual:emulated:2,memory=20KiB"}) {
    const auto engine = make_engine(devices);
    check(*engine, {});
    check(*engine, {.op_a = Op::transpose, .lay_a = Lay::reversed, .lay_c = Lay::every_other});
    check(*engine, {.op_b = Op::transpose, .lay_b = Lay::rows, .lay_c = Lay::rows, .beta = 0});
  }
}

/// Devices that the machine's table calls fast, so that tiles come from a list schedule.
std::unique_ptr<Engine> fast_engine(const std::string& devices) {
  EngineOptions options;
  options.machine = Machine::parse(devices);
  for (const char* const kernel : {"sgemm", "dgemm", "cgemm", "zgemm"})
    options.machine->kernels[kernel]["emulated"] = {{512, 1e-5}, {8192, 2e-2}};
  return std::make_unique<Engine>(options);
}

TEST(Matmul, TallTilesOnFastDevices) {
  const auto host = make_engine("cpu:2");
  for (const char* const devices :
       {"emulated:1,memory=64MiB", "emulated:2,memory=64MiB", "emulated:3,memory=64MiB,peer=off"}) {
    const auto engine = fast_engine(devices);
    for (const Op op : {Op::none, Op::transpose}) {
      for (const Lay lay : {Lay::columns, Lay::rows, Lay::every_other}) {
        for (const Coefficient beta : {Coefficient(0), Coefficient(-0.5)}) {
          if (is_sanitized && (op == Op::none) == (lay == Lay::rows)) continue;
          if (is_sanitized && (beta == Coefficient(0)) != (lay == Lay::columns)) continue;
          const Array a = operand(1100, 1300, op, DType::float32, lay, 1);
          const Array b = operand(1300, 600, op, DType::float32, lay, 2);
          Array c = random_matrix(1100, 600, DType::float32, lay, 3);
          Array expected = c;
          matmul(*engine, 1.5, a.view(), op, b.view(), op, beta, c.view());
          matmul(*host, 1.5, a.view(), op, b.view(), op, beta, expected.view());
          double worst = 0;
          for (std::int64_t j = 0; j < c.cols(); ++j)
            for (std::int64_t i = 0; i < c.rows(); ++i)
              worst = std::max(worst, std::abs(c.get(i, j) - expected.get(i, j)));
          EXPECT_LE(worst, 1300 * epsilon(DType::float32)) << devices;
        }
      }
    }
    EXPECT_GT(engine->counters().devices[0].tasks, 0U);
  }
}

TEST(Matmul, SizesAroundTheTile) {
  const auto engine = make_engine("cpu:2");
  for (const std::int64_t m : {1, 15, 16, 17})
    for (const std::int64_t n : {1, 16, 33})
      for (const std::int64_t k : {1, 16, 31}) {
        check(*engine, {.m = m, .n = n, .k = k});
        check(*engine,
              {.lay_a = Lay::rows, .lay_b = Lay::rows, .lay_c = Lay::rows, .m = m, .n = n, .k = k});
      }
  check(*engine, {}, 1);
  check(*engine, {}, 1000);
  check(*engine, {}, 0);
}

TEST(Matmul, NothingToMultiply) {
  const auto engine = make_engine("cpu:2");
  check(*engine, {.k = 0});
  check(*engine, {.k = 0, .beta = 0});
  check(*engine, {.lay_c = Lay::reversed, .alpha = 0});
  check(*engine, {.m = 0});
  check(*engine, {.n = 0});
}

TEST(Matmul, BetaZeroReadsNothingOfC) {
  const auto engine = make_engine("emulated:1,memory=8KiB");
  for (const std::int64_t k : {0, 20}) {
    Array c(30, 20, DType::float64);  // holds NaN
    const Array a = random_matrix(30, k, DType::float64, Lay::columns, 1);
    const Array b = random_matrix(k, 20, DType::float64, Lay::columns, 2);
    matmul(*engine, 1, a.view(), Op::none, b.view(), Op::none, 0, c.view(), {.tile = 16});
    for (std::int64_t i = 0; i < 30; ++i) EXPECT_FALSE(std::isnan(c.get(i, 7).real())) << k;
  }
}

TEST(Matmul, ComplexFactors) {
  const auto engine = make_engine("cpu:2");
  for (const Lay lay : all_layouts)
    check(*engine, {.dtype = DType::complex128, .lay_c = lay, .alpha = {0.5, -2}, .beta = {0, 1}});
}

TEST(Matmul, SourcesAreReadInAnyForm) {
  for (const char* const devices : {"cpu:2", "emulated:2,memory=14KiB"}) {
    const auto engine = make_engine(devices);
    for (const Op op : all_ops) {
      for (const bool host_only : {false, true}) {
        const Array a = operand(33, 40, op, DType::complex128, Lay::columns, 1);
        const Array b = random_matrix(40, 21, DType::complex128, Lay::columns, 2);
        Array c(33, 21, DType::complex128, Lay::rows);
        const auto source = from_function(
            a.rows(), a.cols(), DType::complex128,
            [&](std::int64_t row, std::int64_t col, const View& out) {
              for (std::int64_t j = 0; j < out.cols; ++j)
                for (std::int64_t i = 0; i < out.rows; ++i)
                  out.as<Complex>()[i + j * out.ld] = a.get(row + i, col + j);
            },
            false, host_only);
        matmul(*engine, 1, source, op, b.view(), Op::none, 0, c.view(), {.tile = 16});
        for (std::int64_t j = 0; j < 21; ++j)
          for (std::int64_t i = 0; i < 33; ++i)
            ASSERT_LE(std::abs(c.get(i, j) - product(a, op, b, Op::none, i, j)), 1e-13);
      }
    }
  }
}

TEST(Matmul, RefusesWhatDoesNotFit) {
  const auto engine = make_engine("cpu:1");
  const Array a(4, 5, DType::float64);
  const Array b(5, 6, DType::float64);
  const Array c(4, 6, DType::float64);
  const Array single(5, 6, DType::float32);
  const auto multiply = [&](const MatrixView& x, const MatrixView& y, const MatrixView& z,
                            const Options& options = {}) {
    matmul(*engine, 1, x, Op::none, y, Op::none, 0, z, options);
  };
  EXPECT_THROW(multiply(b.view(), a.view(), c.view()), Error);
  EXPECT_THROW(multiply(a.view(), single.view(), c.view()), Error);
  EXPECT_THROW(multiply(a.view(), b.view(), b.view()), Error);
  EXPECT_THROW(multiply(a.view(), b.view(), c.view(), {.tile = -1}), Error);
  MatrixView broadcast = c.view();
  broadcast.col_stride = 0;
  EXPECT_THROW(multiply(a.view(), b.view(), broadcast), Error);
  const Array square = random_matrix(6, 6, DType::float64, Lay::columns, 1);
  EXPECT_THROW(multiply(square.view(), square.view(), square.view()), Error);
  // Parts of one array that share no element may be input and output.
  MatrixView left = square.view();
  MatrixView right = square.view();
  left.cols = right.cols = left.rows = right.rows = 3;
  right.data = static_cast<double*>(right.data) + 3;
  EXPECT_NO_THROW(multiply(left, left, right));
  EXPECT_THROW(multiply(a.view(), b.view(), c.view(), {.check_finite = true}), Error);
}

TEST(Matmul, ASourceThatThrowsEndsTheCallAndTheEngineWorksOn) {
  for (const char* const devices :
       {"cpu:2", "emulated:2,memory=8KiB", "virtual:emulated:2,memory=8KiB"}) {
    const auto engine = make_engine(devices);
    const auto source =
        from_function(64, 64, DType::float64, [](std::int64_t row, std::int64_t, const View&) {
          if (row > 30) throw std::runtime_error("no such rows");
        });
    Array c(64, 64, DType::float64);
    try {
      matmul(*engine, 1, source, Op::none, source, Op::none, 0, c.view(), {.tile = 16});
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("no such rows"), std::string::npos) << error.what();
    }
    check(*engine, {});
  }
}

TEST(Matmul, ProgressIsToldAndMayCancel) {
  const auto engine = make_engine("cpu:2");
  const Array a = random_matrix(300, 300, DType::float64, Lay::columns, 1);
  Array c(300, 300, DType::float64);
  double last = -1;
  Options options;
  options.tile = 16;
  options.progress = [&](double fraction) {
    EXPECT_GE(fraction, last);
    last = fraction;
    return true;
  };
  matmul(*engine, 1, a.view(), Op::none, a.view(), Op::none, 0, c.view(), options);
  EXPECT_EQ(last, 1);
  const auto slow =
      from_function(300, 300, DType::float64, [](std::int64_t, std::int64_t, const View& out) {
        std::memset(out.data, 0, sizeof(double));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      });
  options.progress = [](double) { return false; };
  try {
    matmul(*engine, 1, slow, Op::none, slow, Op::none, 0, c.view(), options);
    FAIL() << "not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::cancelled);
  }
  check(*engine, {});
}

}  // namespace
}  // namespace quadriga::linalg::testing
