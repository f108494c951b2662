// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/adoption_test.cpp: arrays on GPUs that a stream of the program still writes.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "device/cuda/cuda_backend.h"
#include "fake_cuda/streams.h"

namespace quadriga {
namespace {

constexpr std::int64_t rows = 64;

class AdoptionOnGpuTest : public testing::Test {
 protected:
  AdoptionOnGpuTest()
      : engine_([] {
          EngineOptions options;
          options.machine = discover_cuda();
          for (Device& device : options.machine->devices)
            device.memory_bytes = std::size_t{64} << 20;
          return options;
        }()) {
    copy_.name = "copy";
    copy_.access = {Access::read, Access::write};
    copy_.cuda = [](const Arguments& call) {
      const auto* const from = call.operands[0].as<double>();
      auto* const to = call.operands[1].as<double>();
      static_cast<cudaStream_t>(call.stream)->push([=] { std::copy_n(from, rows, to); });
    };
    cudaSetDevice(0);
    cudaStreamCreateWithPriority(&own_, 0, 0);
    void* memory = nullptr;
    cudaMalloc(&memory, rows * sizeof(double));
    array_ = static_cast<double*>(memory);
    std::fill_n(array_, rows, 0.0);
  }
  ~AdoptionOnGpuTest() override {
    cudaStreamDestroy(own_);
    cudaFree(array_);
  }
  /// Queues a write on the program's own stream, behind whatever `until` waits for.
  void write(
      double value, std::function<bool()> until = [] { return true; }) {
    own_->push([this, value, until = std::move(until)] {
      while (!until()) std::this_thread::yield();
      std::fill_n(array_, rows, value);
    });
  }
  std::uintptr_t stream() const { return reinterpret_cast<std::uintptr_t>(own_); }
  Data add_array() { return engine_.data(0, array_, rows, 1, rows, DType::float64); }

  Codelet copy_;
  Engine engine_;
  cudaStream_t own_ = nullptr;
  double* array_ = nullptr;
};

TEST_F(AdoptionOnGpuTest, TasksFollowTheProgramsStreamAndNoThreadWaits) {
  std::vector<double> result(rows, -1);
  const Data array = add_array();
  const Data here = engine_.data(result.data(), rows, 1, rows, DType::float64);
  std::atomic<bool> is_open{false};
  write(5, [&] { return is_open.load(); });
  engine_.follow(array, stream());
  const Future copied = engine_.submit(copy_, {{array, Access::read}, {here, Access::write}});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(engine_.done(copied));
  is_open = true;
  engine_.wait(300);
  EXPECT_EQ(result.front(), 5);
  EXPECT_EQ(result.back(), 5);
}

TEST_F(AdoptionOnGpuTest, EachWriteIsSeenByWhatFollowsIt) {
  const Data array = add_array();
  std::vector<std::vector<double>> results(100, std::vector<double>(rows));
  for (std::size_t i = 0; i < results.size(); ++i) {
    write(static_cast<double>(i));
    engine_.follow(array, stream());
    const Data here = engine_.data(results[i].data(), rows, 1, rows, DType::float64);
    SubmitOptions options;
    options.device = static_cast<DeviceId>(i % 2);
    engine_.submit(copy_, {{array, Access::read}, {here, Access::write}}, options);
    engine_.wait(300);
    EXPECT_EQ(results[i].back(), static_cast<double>(i));
  }
}

TEST_F(AdoptionOnGpuTest, TheStreamMayGoMeanwhile) {
  std::vector<double> result(rows, -1);
  const Data array = add_array();
  const Data here = engine_.data(result.data(), rows, 1, rows, DType::float64);
  cudaStream_t passing = nullptr;
  cudaStreamCreateWithPriority(&passing, 0, 0);
  passing->push([this] { std::fill_n(array_, rows, 6.0); });
  engine_.follow(array, reinterpret_cast<std::uintptr_t>(passing));
  engine_.submit(copy_, {{array, Access::read}, {here, Access::write}});
  cudaStreamDestroy(passing);
  engine_.wait(300);
  EXPECT_EQ(result.front(), 6);
}

TEST_F(AdoptionOnGpuTest, AStreamOfAnotherDeviceIsWaitedFor) {
  std::vector<double> result(rows, -1);
  const Data array = add_array();
  const Data here = engine_.data(result.data(), rows, 1, rows, DType::float64);
  cudaSetDevice(1);
  cudaStream_t other = nullptr;
  cudaStreamCreateWithPriority(&other, 0, 0);
  other->push([this] { std::fill_n(array_, rows, 8.0); });
  engine_.follow(array, reinterpret_cast<std::uintptr_t>(other));
  EXPECT_TRUE(other->is_idle());
  engine_.submit(copy_, {{array, Access::read}, {here, Access::write}});
  engine_.wait(300);
  EXPECT_EQ(result.front(), 8);
  cudaStreamDestroy(other);
  cudaSetDevice(0);
}

}  // namespace
}  // namespace quadriga
