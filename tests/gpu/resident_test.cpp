// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/resident_test.cpp: matrices that lie on a GPU: used in place, ordered after the
// caller's stream, lost to nobody.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <quadriga/linalg.h>
#include <quadriga/quadriga.h>

#include "device/cuda/cuda_backend.h"
#include "device/cuda/cuda_check.h"
#include "engine/c_engine.h"
#include "unit/linalg/matrices.h"

namespace quadriga::linalg {
namespace {

using namespace testing;
using cuda::check;

class ResidentOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
    engine_.emplace(EngineOptions{.devices = "cuda:1,memory=256MiB"});
  }
  void TearDown() override {
    engine_.reset();
    for (void* const block : blocks_) cudaFree(block);
  }
  /// The same matrix on the GPU.
  MatrixView there(const Array& array) {
    MatrixView view = array.view();
    view.data = nullptr;
    const std::size_t bytes = bytes_of(view);
    check(cudaMalloc(&view.data, bytes), "allocating");
    blocks_.push_back(view.data);
    check(cudaMemcpy(view.data, array.view().data, bytes, cudaMemcpyHostToDevice), "copying in");
    view.device = 0;
    return view;
  }
  /// Elements from the GPU to an array of the same layout.
  static void fetch(const MatrixView& view, Array& array) {
    check(cudaMemcpy(array.view().data, view.data, bytes_of(view), cudaMemcpyDeviceToHost),
          "copying out");
  }
  static void expect_near(const Array& found, const Array& expected, double tolerance) {
    double worst = 0;
    for (std::int64_t j = 0; j < found.cols(); ++j)
      for (std::int64_t i = 0; i < found.rows(); ++i)
        worst = std::max(worst, std::abs(found.get(i, j) - expected.get(i, j)));
    EXPECT_LT(worst, tolerance);
  }
  std::uint64_t moved() const {
    std::uint64_t bytes = 0;
    for (const LinkCounters& link : engine_->counters().links) bytes += link.bytes;
    return bytes;
  }
  static std::size_t bytes_of(const MatrixView& view) {
    const std::int64_t last =
        (view.rows - 1) * view.row_stride + (view.cols - 1) * view.col_stride + 1;
    return static_cast<std::size_t>(last) * size_of(view.dtype);
  }

  std::optional<Engine> engine_;
  std::vector<void*> blocks_;
};

TEST_F(ResidentOnGpu, TellsWhoseMemoryItIs) {
  const MatrixView a = there(random_matrix(8, 8, DType::float64, Lay::columns, 1));
  EXPECT_EQ(engine_->device_of(a.data), 0);
  double on_host = 0;
  EXPECT_EQ(engine_->device_of(&on_host), no_device);
  EXPECT_THROW(engine_->data(0, &on_host, 1, 1, 1, DType::float64), Error);
  engine_->synchronize(0);
  engine_->synchronize(0, 1);
}

// As C and Fortran call it: by the address alone, on the host or on the GPU.
TEST_F(ResidentOnGpu, QuadrigaHKnowsWhatIsOnAGpu) {
  constexpr int n = 120;
  engine_.reset();
  quadriga_engine engine{Engine({.devices = "cuda:1,memory=256MiB"})};
  const Array a = spd_matrix(n, DType::float64, Lay::columns, 1);
  Array c = random_matrix(n, n, DType::float64, Lay::columns, 2);
  Array found = c;
  const MatrixView a_there = there(a), c_there = there(c);
  const double one = 1;
  const auto call = [&](void* left, void* right, void* to) {
    return quadriga_dgemm(&engine, 'N', 'T', n, n, n, &one, static_cast<double*>(left), n,
                          static_cast<double*>(right), n, &one, static_cast<double*>(to), n);
  };
  ASSERT_EQ(call(a_there.data, a.view().data, c_there.data), 0) << quadriga_message();
  ASSERT_EQ(call(a.view().data, a.view().data, c.view().data), 0) << quadriga_message();
  fetch(c_there, found);
  expect_near(found, c, n * n * epsilon(DType::float64));
}

TEST_F(ResidentOnGpu, ProductsAndFactorsMoveNothing) {
  constexpr int order = 120;
  for (const DType dtype : all_types)
    for (const Lay lay : {Lay::columns, Lay::rows, Lay::gaps}) {
      SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(static_cast<int>(lay)));
      const double tolerance = order * order * epsilon(dtype);
      const Array a = spd_matrix(order, dtype, lay, 1);
      Array c = random_matrix(order, order, dtype, lay, 2);
      Array found = c;
      for (const std::int64_t tile : {0, 32}) {
        const MatrixView a_there = there(a);
        const MatrixView c_there = there(c);
        engine_->reset_counters();
        matmul(*engine_, 1, a_there, Op::none, a_there, Op::none, 0, c_there, {.tile = tile});
        EXPECT_EQ(moved(), 0u);
        fetch(c_there, found);
        Array expected = c;
        for (std::int64_t j = 0; j < order; ++j)
          for (std::int64_t i = 0; i < order; ++i)
            expected.set(i, j, product(a, Op::none, a, Op::none, i, j));
        expect_near(found, expected, order * tolerance);
        cholesky(*engine_, a_there, a_there, Uplo::lower, Other::zero, {.tile = tile});
        EXPECT_EQ(moved(), 0u);
        fetch(a_there, found);
        for (std::int64_t j = 0; j < order; ++j)
          for (std::int64_t i = 0; i < order; ++i)
            expected.set(i, j, product(found, Op::none, found, Op::conjugate, i, j));
        expect_near(expected, a, order * tolerance);
        EXPECT_EQ(found.get(3, 100), Complex(0)) << "the other triangle";
      }
    }
}

TEST_F(ResidentOnGpu, WaitsForTheCallersStream) {
  constexpr std::int64_t n = 4096;
  const auto bytes = static_cast<std::size_t>(n * n) * sizeof(double);
  void* memory = nullptr;
  check(cudaMalloc(&memory, 2 * bytes), "allocating");
  blocks_.push_back(memory);
  MatrixView a = MatrixView::columns(memory, n, n, DType::float64);
  a.device = 0;
  MatrixView c = a;
  c.data = static_cast<std::byte*>(memory) + bytes;
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  for (int byte = 0; byte < 40; ++byte)
    check(cudaMemsetAsync(memory, 40 - byte, bytes, stream), "setting");
  check(cudaMemsetAsync(memory, 0, bytes, stream), "setting");
  engine_->synchronize(0, reinterpret_cast<std::uintptr_t>(stream));
  matmul(*engine_, 1, a, Op::none, a, Op::none, 0, c);
  double first = 1;
  check(cudaMemcpy(&first, c.data, sizeof(double), cudaMemcpyDeviceToHost), "copying out");
  EXPECT_EQ(first, 0);
  cudaStreamDestroy(stream);
}

TEST_F(ResidentOnGpu, OtherOperandsComeFromTheHost) {
  const Array a = random_matrix(500, 400, DType::float64, Lay::columns, 1);
  const Array b = random_matrix(400, 300, DType::float64, Lay::columns, 2);
  Array c = random_matrix(500, 300, DType::float64, Lay::columns, 3);
  const MatrixView b_there = there(b);
  const MatrixView c_there = there(c);
  matmul(*engine_, 1, a.view(), Op::none, b_there, Op::none, 0, c_there, {.tile = 128});
  fetch(c_there, c);
  Array expected = c;
  for (std::int64_t j = 0; j < 300; ++j)
    for (std::int64_t i = 0; i < 500; ++i)
      expected.set(i, j, product(a, Op::none, b, Op::none, i, j));
  expect_near(c, expected, 1e-11);
}

}  // namespace
}  // namespace quadriga::linalg
