// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/full_test.cpp: a device that is filled by others once an engine has its arena.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <string>
#include <vector>

#include "base/log.h"
#include "device/cuda/cuda_backend.h"
#include "linalg/kernels/handles_cuda.h"

namespace quadriga {
namespace {

/// All of a device's memory but the smallest pieces, until it is destroyed.
class Hog {
 public:
  explicit Hog(int ordinal) {
    cudaSetDevice(ordinal);
    constexpr std::size_t largest = std::size_t{1} << 36;
    constexpr std::size_t smallest = std::size_t{1} << 20;
    for (std::size_t bytes = largest; bytes >= smallest;) {
      void* block = nullptr;
      if (cudaMalloc(&block, bytes) == cudaSuccess)
        blocks_.push_back(block);
      else
        bytes /= 2;
    }
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
    uses_.signature = {Access::update};
    uses_.cuda = [](const Arguments& call) {
      const auto handles = kernels::cuda::handles_of(call);
      static_cast<void>(handles->blas());
      static_cast<void>(handles->scratch(std::size_t{64} << 20));
    };
  }
  /// Runs a task that needs a library's workspace; what it failed with, if it did.
  std::string run(Engine& engine) {
    double value = 1;
    const Data data = engine.add(&value, 1, 1, 1, DType::float64);
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

}  // namespace
}  // namespace quadriga
