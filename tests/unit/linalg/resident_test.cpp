// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/resident_test.cpp: matrices that lie on (emulated) devices give what the same
// matrices on the host give, to the bit, and nothing moves that needn't.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "device_homes.h"
#include "unit/linalg/matrices.h"

namespace quadriga::linalg {
namespace {

using namespace testing;

class ResidentTest : public ::testing::Test {
 protected:
  void make(const std::string& devices) {
    WrappedOptions options;
    options.devices = devices;
    engine_ = EngineAccess::make_unique(homes_.around(options));
  }
  /// From the first element to the last.
  static std::size_t extent(const MatrixView& view) {
    const std::int64_t last = (view.rows - 1) * std::max<std::int64_t>(view.row_stride, 0) +
                              (view.cols - 1) * std::max<std::int64_t>(view.col_stride, 0);
    return static_cast<std::size_t>(last + 1) * size_of(view.dtype);
  }
  /// The same matrix in a device's memory.
  MatrixView there(const Array& array, DeviceId device) {
    MatrixView view = array.view();
    std::byte* const memory = homes_.take(device, extent(view));
    std::memcpy(memory, view.data, extent(view));
    view.data = memory;
    view.device = device;
    return view;
  }
  /// Whether a matrix on a device, which the host can read, holds the same elements.
  static bool same(const MatrixView& found, const Array& expected) {
    return same_elements(found, expected.view());
  }
  std::uint64_t moved() const {
    std::uint64_t bytes = 0;
    for (const LinkCounters& link : engine_->counters().links) bytes += link.bytes;
    return bytes;
  }
  Engine& engine() { return *engine_; }

  DeviceHomes homes_;
  std::unique_ptr<Engine> engine_;
  Options options_{.tile = 16};
};

constexpr const char* one = "emulated:1,memory=1MiB";
constexpr const char* apart = "emulated:2,memory=1MiB,peer=off";
constexpr const char* joined = "emulated:2,memory=1MiB,peer=8GB/s";
constexpr Lay contiguous[] = {Lay::columns, Lay::rows, Lay::gaps};

TEST_F(ResidentTest, ProductsOnOneDeviceMoveNothing) {
  make(one);
  for (const DType dtype : all_types) {
    for (const Lay lay : contiguous) {
      const Array a = random_matrix(40, 33, dtype, Lay::columns, 1);
      const Array b = random_matrix(33, 51, dtype, lay, 2);
      Array c = random_matrix(40, 51, dtype, lay, 3);
      const MatrixView c_there = there(c, 0);
      engine().reset_counters();
      matmul(engine(), 2, there(a, 0), Op::none, there(b, 0), Op::none, 3, c_there, options_);
      EXPECT_EQ(moved(), 0u) << name(dtype) << ", layout " << static_cast<int>(lay);
      matmul(engine(), 2, a.view(), Op::none, b.view(), Op::none, 3, c.view(), options_);
      EXPECT_TRUE(same(c_there, c)) << name(dtype) << ", layout " << static_cast<int>(lay);
    }
  }
}

TEST_F(ResidentTest, OperandsMayLieAnywhere) {
  for (const char* const devices : {joined, apart}) {
    make(devices);
    const Array a = random_matrix(70, 40, DType::float64, Lay::rows, 1);
    const Array b = random_matrix(40, 60, DType::float64, Lay::gaps, 2);
    Array c = random_matrix(70, 60, DType::float64, Lay::columns, 3);
    const MatrixView c_there = there(c, 0);
    matmul(engine(), 1, a.view(), Op::none, there(b, 1), Op::none, 1, c_there, options_);
    matmul(engine(), 1, a.view(), Op::none, b.view(), Op::none, 1, c.view(), options_);
    EXPECT_TRUE(same(c_there, c)) << devices;
  }
}

TEST_F(ResidentTest, FactorsOfMatricesOnDevices) {
  for (const char* const devices : {one, joined, apart}) {
    make(devices);
    for (const DType dtype : all_types)
      for (const Uplo uplo : {Uplo::lower, Uplo::upper})
        for (const Lay lay : contiguous) {
          SCOPED_TRACE(fmt::format("{} {} {}", devices, name(dtype), static_cast<int>(lay)));
          Array a = spd_matrix(50, dtype, lay, 5);
          Array factor = random_matrix(50, 50, dtype, lay, 6);
          const MatrixView in_place = there(a, 0);
          const MatrixView out = there(factor, 0);
          cholesky(engine(), in_place, out, uplo, Other::zero, options_);
          cholesky(engine(), in_place, in_place, uplo, Other::zero, options_);
          cholesky(engine(), a.view(), factor.view(), uplo, Other::zero, options_);
          EXPECT_TRUE(same(out, factor));
          EXPECT_TRUE(same(in_place, factor));
        }
  }
}

TEST_F(ResidentTest, SolvesByAFactorInADevicesMemory) {
  for (const char* const devices : {one, joined, apart}) {
    make(devices);
    for (const Lay lay : {Lay::columns, Lay::rows}) {
      SCOPED_TRACE(devices);
      const Array a = spd_matrix(50, DType::float64, lay, 5);
      Array b = random_matrix(50, 20, DType::float64, lay, 6);
      const MatrixView memory = there(a, 0);
      const MatrixView x = there(b, 0);
      const Factor factor = cho_factor(engine(), memory, {Uplo::lower, true}, options_);
      factor.solve(x);
      const Array same_a = a;
      const Factor on_host = cho_factor(engine(), same_a.view(), {Uplo::lower, true}, options_);
      on_host.solve(b.view());
      EXPECT_TRUE(same(x, b));
      EXPECT_EQ(factor.logdet(), on_host.logdet());
      Array expected(50, 50, DType::float64);
      on_host.unpack(expected.view(), Other::zero);
      const MatrixView elsewhere = there(a, 0);
      factor.unpack(elsewhere, Other::zero);
      EXPECT_TRUE(same(elsewhere, expected));
      factor.unpack(memory, Other::zero);
      EXPECT_TRUE(same(memory, expected));
    }
  }
}

TEST_F(ResidentTest, RankUpdatesAndTriangularSolves) {
  make(joined);
  const Array a = random_matrix(50, 30, DType::float64, Lay::columns, 1);
  Array c = spd_matrix(50, DType::float64, Lay::columns, 2);
  Array b = random_matrix(50, 9, DType::float64, Lay::columns, 3);
  const MatrixView c_there = there(c, 1);
  const MatrixView b_there = there(b, 1);
  syrk(engine(), 1, there(a, 1), Op::none, 2, c_there, Uplo::lower, options_);
  syrk(engine(), 1, a.view(), Op::none, 2, c.view(), Uplo::lower, options_);
  EXPECT_TRUE(same(c_there, c));
  solve_triangular(engine(), c_there, Uplo::lower, Op::none, false, b_there, options_);
  solve_triangular(engine(), c.view(), Uplo::lower, Op::none, false, b.view(), options_);
  EXPECT_TRUE(same(b_there, b));
  // Nothing is multiplied, C is scaled all the same.
  syrk(engine(), 0, there(a, 1), Op::none, 3, c_there, Uplo::upper, options_);
  syrk(engine(), 0, a.view(), Op::none, 3, c.view(), Uplo::upper, options_);
  EXPECT_TRUE(same(c_there, c));
  matmul(engine(), 0, there(a, 1), Op::none, there(a, 1), Op::transpose, 0, c_there, options_);
  matmul(engine(), 0, a.view(), Op::none, a.view(), Op::transpose, 0, c.view(), options_);
  EXPECT_TRUE(same(c_there, c));
}

TEST_F(ResidentTest, ChecksLookAtTheElementsOnTheDevice) {
  make(one);
  Array a = spd_matrix(50, DType::float64, Lay::rows, 2);
  const Array b = random_matrix(50, 4, DType::float64, Lay::columns, 3);
  a.set(33, 33, 0);
  try {
    solve_triangular(engine(), there(a, 0), Uplo::lower, Op::none, false, there(b, 0), options_);
    FAIL();
  } catch (const SingularMatrix& error) {
    EXPECT_EQ(error.index(), 33);
  }
  Options checked = options_;
  checked.check_finite = true;
  const MatrixView c = there(a, 0);
  EXPECT_NO_THROW(matmul(engine(), 1, there(a, 0), Op::none, there(a, 0), Op::none, 0, c, checked));
  a.set(2, 40, std::numeric_limits<double>::infinity());
  EXPECT_THROW(matmul(engine(), 1, there(a, 0), Op::none, there(a, 0), Op::none, 0, c, checked),
               Error);
}

TEST_F(ResidentTest, RefusesWhatCannotBeUsedWhereItLies) {
  make(one);
  const Array a = random_matrix(20, 20, DType::float64, Lay::every_other, 1);
  const Array plain = random_matrix(20, 20, DType::float64, Lay::columns, 1);
  const auto refusal = [&](const MatrixView& left, const MatrixView& out) {
    try {
      matmul(engine(), 1, left, Op::none, plain.view(), Op::none, 0, out, options_);
      return std::string();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      return std::string(error.what());
    }
  };
  EXPECT_NE(refusal(there(a, 0), there(plain, 0)).find("strides 2 and 41"), std::string::npos);
  MatrixView foreign = there(plain, 0);
  foreign.device = 5;
  EXPECT_NE(refusal(foreign, there(plain, 0)).find("0 to 1"), std::string::npos);
  MatrixView lying = plain.view();
  lying.device = 0;
  EXPECT_NE(refusal(lying, there(plain, 0)).find("the host"), std::string::npos);
  EXPECT_EQ(refusal(there(plain, 0), there(plain, 0)), "") << "the engine works on";
}

/// What plans make of an H200's rates, by the virtual clock.
class ResidentPlanTest : public ::testing::Test {
 protected:
  MatrixView matrix(std::int64_t order, DeviceId device = 0) {
    MatrixView view = MatrixView::columns(nullptr, order, order, DType::float64);
    view.data = homes_.take(device, static_cast<std::size_t>(order * order) * sizeof(double));
    view.device = device;
    return view;
  }
  void make(const std::string& file) {
    WrappedOptions options;
    options.machine = Machine::from_file(QUADRIGA_SOURCE_DIR "/machines/" + file);
    std::erase_if(options.machine->devices,
                  [](const Device& device) { return device.kind == DeviceKind::cpu; });
    options.virtual_clock = true;
    options.compute = false;
    engine_ = EngineAccess::make_unique(homes_.around(options, std::size_t{128} << 30));
  }
  double seconds() const { return static_cast<double>(engine_->counters().elapsed) / 1e9; }
  std::uint64_t tasks() const { return engine_->counters().ended; }
  double table(const char* kernel, double order) const {
    const Machine& machine = engine_->machine();
    return machine.kernel_seconds(machine.devices[0], kernel, order, std::pow(order, 3));
  }

  DeviceHomes homes_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(ResidentPlanTest, AProductIsOneCallWhereThatIsFastest) {
  make("h200x1.json");
  const MatrixView c = matrix(16384);
  matmul(*engine_, 1, matrix(16384), Op::none, matrix(16384), Op::none, 0, c);
  EXPECT_EQ(tasks(), 1u);
  EXPECT_LT(seconds(), 1.03 * table("dgemm", 16384));
}

TEST_F(ResidentPlanTest, AFactorizationIsNoSlowerThanOneCall) {
  for (const std::int64_t order : {4096, 16384, 65536}) {
    make("h200x1.json");
    const MatrixView a = matrix(order);
    cholesky(*engine_, a, a, Uplo::lower, Other::leave);
    EXPECT_LT(seconds(), 1.01 * table("dpotrf", static_cast<double>(order))) << order;
    EXPECT_EQ(tasks() > 1, order == 65536) << "tiles pay for large ones";
  }
}

TEST_F(ResidentPlanTest, NeighboursHelpWhereTheLinksAllow) {
  make("h200x4.json");
  const MatrixView c = matrix(32768);
  matmul(*engine_, 1, matrix(32768), Op::none, matrix(32768), Op::none, 0, c);
  EXPECT_LT(seconds(), 0.5 * table("dgemm", 32768));
}

}  // namespace
}  // namespace quadriga::linalg
