// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/full_test.cpp: a device that is filled by others once an engine has its arena.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <quadriga/engine.h>
#include <quadriga/linalg.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/log.h"
#include "device/cuda/cuda_backend.h"
#include "linalg/kernels/handles_cuda.h"

namespace quadriga {
namespace {

/// All of a device's memory but so many bytes and the smallest pieces, until it is destroyed.
class Hog {
 public:
  explicit Hog(int ordinal, std::size_t left = 0) {
    cudaSetDevice(ordinal);
    void* spared = nullptr;
    if (left > 0 && cudaMalloc(&spared, left) != cudaSuccess) spared = nullptr;
    constexpr std::size_t largest = std::size_t{1} << 36;
    constexpr std::size_t smallest = std::size_t{1} << 20;
    for (std::size_t bytes = largest; bytes >= smallest;) {
      void* block = nullptr;
      if (cudaMalloc(&block, bytes) == cudaSuccess)
        blocks_.push_back(block);
      else
        bytes /= 2;
    }
    cudaFree(spared);
    cudaGetLastError();
  }
  ~Hog() {
    for (void* const block : blocks_) cudaFree(block);
  }
  Hog(const Hog&) = delete;
  Hog& operator=(const Hog&) = delete;

 private:
  std::vector<void*> blocks_;
};

class FullGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
    options_.machine = discover_cuda();
    for (Device& device : options_.machine->devices) device.memory_bytes = std::size_t{256} << 20;
    uses_.name = "uses a library";
    uses_.access = {Access::update};
    uses_.cuda = [](const Arguments& call) {
      const auto handles = kernels::cuda::handles_of(call);
      static_cast<void>(handles->blas());
      static_cast<void>(handles->scratch(std::size_t{64} << 20));
    };
  }
  /// Runs a task that needs a library's workspace; what it failed with, if it did.
  std::string run(Engine& engine) {
    double value = 1;
    const Data data = engine.data(&value, 1, 1, 1, DType::float64);
    SubmitOptions first;
    first.device = 0;
    const Future task = engine.submit(uses_, {{data, Access::update}}, first);
    std::string said;
    try {
      engine.wait(task, 60);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::task_failed) << error.what();
      said = error.what();
    }
    engine.remove(data, true);
    return said;
  }

  EngineOptions options_;
  Codelet uses_;
};

TEST_F(FullGpu, WorkspacesThatCannotBeHadFailTheirTaskByName) {
  {
    Engine engine(options_);
    EXPECT_EQ(run(engine), "");  // loads the library's code
  }
  Engine engine(options_);
  {
    const Hog hog(0);
    const std::string said = run(engine);
    EXPECT_NE(said.find("uses a library"), std::string::npos) << said;
  }
  EXPECT_EQ(run(engine), "");
}

TEST_F(FullGpu, TheArenaIsWhatOthersLeave) {
  std::string said;
  set_log_sink([&said](LogLevel, std::string_view message) { said += message; });
  options_.machine->devices.front().memory_bytes *= 1024;  // more than any has
  {
    const Engine engine(options_);
    EXPECT_LT(engine.machine().devices.front().memory_bytes,
              options_.machine->devices.front().memory_bytes);
    EXPECT_GT(engine.machine().devices.front().memory_bytes, std::size_t{1} << 30);
  }
  set_log_sink({});
  EXPECT_NE(said.find("of the 256 GiB that it was asked for"), std::string::npos) << said;
}

// The whole of a device that another program fills but for this: linear algebra works, or the
// engine says what it lacks.
TEST_F(FullGpu, AFactorizationWorksBesideAHog) {
  constexpr std::int64_t n = 6000;
  std::vector<double> a(static_cast<std::size_t>(n * n), 0.5);
  for (std::int64_t i = 0; i < n; ++i) a[static_cast<std::size_t>(i * n + i)] = 2.0 * n;
  const std::size_t gibibyte = std::size_t{1} << 30;
  for (const std::size_t left :
       {6 * gibibyte, 3 * gibibyte, gibibyte, gibibyte / 2, gibibyte / 4}) {
    const Hog hog(0, left);
    SCOPED_TRACE(std::to_string(left >> 20) + " MiB left");
    std::vector<double> c = a;
    try {
      EngineOptions options;
      options.machine = discover_cuda();
      Engine engine(std::move(options));
      const linalg::MatrixView view = linalg::MatrixView::columns(c.data(), n, n, DType::float64);
      linalg::cholesky(engine, view, view);
      const DeviceCounters counted = engine.counters().devices.front();
      std::printf("%zu MiB left: arena %zu MiB, libraries %zu MiB\n", left >> 20,
                  counted.arena_bytes >> 20, counted.library_bytes >> 20);
      EXPECT_GT(counted.library_bytes, 0u);
      EXPECT_NEAR(c[0] * c[0], 2.0 * n, 1e-6);
    } catch (const Error& error) {
      EXPECT_LT(left, 3 * gibibyte) << error.what();
      const std::string text = error.what();
      for (const char* const word : {"gpu0", "free"})
        EXPECT_NE(text.find(word), std::string::npos) << text;
      EXPECT_TRUE(text.find("wanted") != std::string::npos ||
                  text.find("needs more than") != std::string::npos)
          << text;
    }
  }
}

}  // namespace
}  // namespace quadriga
