// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/fourth_kind_test.cpp: a kind of devices that nobody knew factorizes and
// multiplies: all that it takes is a backend with its row (tests/polled_backend.h), and a
// StreamBlas with its line in the table of ports.
#include <complex>
#include <map>
#include <string>
#include <vector>

#include "linalg/kernels/stream_ports.h"
#include "plain_kind.h"
#include "unit/kernels/host_stream.h"
#include "unit/linalg/matrices.h"

namespace quadriga::linalg::testing {
namespace {

using kernels::HostStream;
using kernels::KernelSpec;
using kernels::StreamVariant;

/// Of all calls so far, by their names.
std::map<std::string, int>& calls() {
  static std::map<std::string, int> counted;
  return counted;
}

/// The stream computes when it is called: the backend calls a variant when its operands are there.
template <class T>
Kernel variant_of(const KernelSpec& spec) {
  return [variant = std::get<StreamVariant<T>>(spec.stream)](const Arguments& arguments) {
    HostStream<T> on;
    variant(arguments, on);
    for (const auto& [name, count] : on.calls) calls()[name] += count;
  };
}

Kernel variant(const KernelSpec& spec, DType type) {
  switch (type) {
    case DType::float32:
      return variant_of<float>(spec);
    case DType::float64:
      return variant_of<double>(spec);
    case DType::complex64:
      return variant_of<std::complex<float>>(spec);
    default:
      return variant_of<std::complex<double>>(spec);
  }
}

/// The row, and the line: before any codelet of a tile kernel is made.
const DeviceKind tiles = [] {
  const DeviceKind kind = polled_kind("tiles", std::size_t{1} << 20);
  kernels::add_stream_port(kind, variant);
  return kind;
}();

class FourthKindLinalg : public ::testing::Test {
 protected:
  FourthKindLinalg() { calls().clear(); }
  /// Both engines' results, of which the first is the fourth kind's.
  template <class Call>
  void compare(const Array& out, Call&& call, double bound) {
    Array on_tiles = out, on_cores = out;
    call(engine_, on_tiles);
    call(cores_, on_cores);
    for (std::int64_t j = 0; j < out.cols(); ++j)
      for (std::int64_t i = 0; i < out.rows(); ++i)
        ASSERT_LE(std::abs(on_tiles.get(i, j) - on_cores.get(i, j)), bound) << i << ", " << j;
  }

  Engine engine_{{.devices = "tiles"}};
  Engine cores_{{.devices = "cpu:1"}};
};

TEST_F(FourthKindLinalg, FactorizesByItsStreams) {
  for (const DType type : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    calls().clear();
    const Array a = spd_matrix(100, type, Lay::columns, 1);
    compare(
        random_matrix(100, 100, type, Lay::columns, 2),
        [&](Engine& engine, Array& out) {
          cholesky(engine, a.view(), out.view(), Uplo::lower, Other::zero, {.tile = 25});
        },
        100 * epsilon(type) * 100);
    EXPECT_EQ(calls()["potrf"], 4) << name(type);
    EXPECT_EQ(calls()["trsm"], 6) << name(type);
    EXPECT_EQ(calls()["gemm"], 4) << name(type);
    EXPECT_EQ(calls()["solver_scratch"], 0) << "its workspace comes from the arena";
  }
}

TEST_F(FourthKindLinalg, MultipliesByItsStreams) {
  const Array a = random_matrix(60, 50, DType::float64, Lay::columns, 1);
  const Array b = random_matrix(50, 40, DType::float64, Lay::columns, 2);
  compare(
      random_matrix(60, 40, DType::float64, Lay::columns, 3),
      [&](Engine& engine, Array& c) {
        matmul(engine, {1, 0}, a.view(), Op::none, b.view(), Op::none, {0.5, 0}, c.view(),
               {.tile = 16});
      },
      1e-12);
  EXPECT_GT(calls()["gemm"], 0);
}

TEST_F(FourthKindLinalg, ReportsAMinorThatIsNotPositiveDefinite) {
  Array a = spd_matrix(100, DType::float64, Lay::columns, 1);
  a.set(60, 60, -1);
  try {
    cholesky(engine_, a.view(), a.view(), Uplo::lower, Other::zero, {.tile = 25});
    FAIL() << "nothing was thrown";
  } catch (const NotPositiveDefinite& error) {
    EXPECT_EQ(error.minor(), 61);
  }
}

TEST_F(FourthKindLinalg, APortComesOnceAndBeforeTheFirstKernel) {
  const auto refused = [](DeviceKind kind) {
    try {
      kernels::add_stream_port(kind, variant);
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  kernels::added_stream_ports();
  const DeviceKind late = polled_kind("late", std::size_t{1} << 20);
  EXPECT_NE(refused(late).find("'late' comes too late"), std::string::npos) << refused(late);
  EXPECT_NE(refused(plain_kind()).find("of another kind"), std::string::npos);
}

}  // namespace
}  // namespace quadriga::linalg::testing
