// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/on_device.h: runs CUDA variants of codelets on matrices of the host.
#pragma once

#include <gtest/gtest.h>

#include "device/cuda/cuda_backend.h"
#include "linalg/kernels/codelets.h"
#include "unit/kernels/matrices.h"

namespace quadriga::kernels {

template <class T>
constexpr DType dtype_of = std::is_same_v<T, float>                 ? DType::float32
                           : std::is_same_v<T, double>              ? DType::float64
                           : std::is_same_v<T, std::complex<float>> ? DType::complex64
                                                                    : DType::complex128;

template <class T>
View view_of(Matrix<T>& matrix) {
  const KernelTile<T> tile = matrix.tile();
  return {tile.data, tile.rows, tile.cols, tile.ld, dtype_of<T>};
}

inline double max_of(const Matrix<double>& values) {
  double largest = 0;
  for (int i = 0; i < values.rows(); ++i) largest = std::max(largest, std::abs(values(i, 0)));
  return largest;
}

/// A backend with one device and one stream; tests skip themselves without a GPU.
class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
    Machine machine = discover_cuda();
    machine.devices.front().memory_bytes = std::size_t{256} << 20;
    backend_ = make_cuda_backend(machine);
    stream_ = backend_->create_stream(0, StreamKind::compute);
  }

  /// Runs the CUDA variant on copies of the operands, margins and all, and copies them back.
  template <class Params>
  void run(const Codelet& codelet, std::initializer_list<View> operands, const Params& params) {
    ASSERT_TRUE(codelet.cuda) << codelet.name;
    const std::vector<View> home(operands);
    std::vector<View> views(home);
    for (View& view : views) {
      view.data = backend_->allocate(0, bytes_of(view));
      ASSERT_NE(view.data, nullptr);
    }
    for (std::size_t i = 0; i < home.size(); ++i) move(home[i], views[i], host_space, 1);
    Launch launch;
    launch.kernel = &codelet.cuda;
    launch.arguments.operands = views;
    launch.arguments.params = std::as_bytes(std::span(&params, 1));
    launch.name = codelet.name;
    backend_->launch(stream_, launch);
    for (std::size_t i = 0; i < home.size(); ++i) move(views[i], home[i], 1, host_space);
    collect(2 * home.size() + 1);
    for (const View& view : views) backend_->deallocate(0, static_cast<std::byte*>(view.data));
  }
  /// The failure of the latest run; null if there was none.
  std::exception_ptr error_;

 private:
  static std::size_t bytes_of(const View& view) {
    return static_cast<std::size_t>(view.ld * view.cols) * size_of(view.dtype);
  }
  void move(const View& from, const View& to, SpaceId source, SpaceId target) {
    backend_->copy(stream_, {source, target, static_cast<const std::byte*>(from.data),
                             static_cast<std::byte*>(to.data), bytes_of(from)});
  }
  void collect(std::size_t count) {
    error_ = nullptr;
    while (count > 0) {
      Completion some[4];
      const std::size_t got = backend_->next_completion(some, never);
      count -= got;
      for (std::size_t i = 0; i < got; ++i)
        if (some[i].error) error_ = some[i].error;
    }
  }

  std::unique_ptr<Backend> backend_;
  StreamId stream_ = 0;
};

}  // namespace quadriga::kernels
