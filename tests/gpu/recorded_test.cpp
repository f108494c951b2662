// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/recorded_test.cpp: variants that are recorded, on the CUDA backend: what runs, what is
// recorded, and what can't be.
#include "device/recorded.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <atomic>
#include <deque>
#include <string>
#include <vector>

#include "base/log.h"
#include "device/cuda/cuda_backend.h"
#include "device/cuda/cuda_check.h"

namespace quadriga {
namespace {

using cuda::check;

cudaStream_t stream_of(const Arguments& call) { return static_cast<cudaStream_t>(call.stream); }

void count_run(void* count) { ++*static_cast<std::atomic<int>*>(count); }

class RecordedTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
    Machine machine = discover_cuda();
    for (Device& device : machine.devices) device.memory_bytes = std::size_t{64} << 20;
    space_ = machine.devices.front().space;
    backend_ = make_cuda_backend(machine);
    stream_ = backend_->create_stream(0, StreamKind::compute);
    set_log_sink([this](LogLevel, std::string_view message) { said_ += message; });
  }
  void TearDown() override {
    set_log_sink({});
    backend_.reset();
  }

  View bytes(std::int64_t count) {
    return {backend_->allocate(0, static_cast<std::size_t>(count)), count, 1, count, DType::bytes};
  }
  void write(const View& to, char value) {
    const std::vector<char> values(bytes_of(to), value);
    backend_->copy(stream_, {host_space, space_, reinterpret_cast<const std::byte*>(values.data()),
                             to.as<std::byte>(), values.size()});
    EXPECT_EQ(end_of_next(), nullptr);
  }
  std::vector<char> read(const View& from) {
    std::vector<char> values(bytes_of(from));
    backend_->copy(stream_, {space_, host_space, from.as<std::byte>(),
                             reinterpret_cast<std::byte*>(values.data()), values.size()});
    EXPECT_EQ(end_of_next(), nullptr);
    return values;
  }
  std::exception_ptr end_of_next() {
    Completion ended;
    while (backend_->next_completion({&ended, 1}, never) == 0) {
    }
    return ended.error;
  }
  /// Runs a launch to its end; what it failed with.
  std::exception_ptr run(const Kernel& kernel, std::span<const View> operands,
                         std::span<const std::byte> params = {}) {
    Launch launch;
    launch.kernel = &kernel;
    launch.arguments = {operands, params, nullptr};
    launch.name = "recorded";
    backend_->launch(stream_, launch);
    return end_of_next();
  }
  /// Copies the first operand to the second, twice, and counts on the device's side.
  Kernel copying() {
    return recorded([this](const Arguments& call) {
      ++called_;
      for (int i = 0; i < 2; ++i) {
        check(
            cudaMemcpyAsync(call.operands[1].data, call.operands[0].data,
                            bytes_of(call.operands[0]), cudaMemcpyDeviceToDevice, stream_of(call)),
            "a copy");
        check(cudaLaunchHostFunc(stream_of(call), count_run, &ran_), "counting");
      }
    });
  }

  std::unique_ptr<Backend> backend_;
  StreamId stream_ = 0;
  SpaceId space_ = host_space;
  int called_ = 0;
  std::atomic<int> ran_{0};
  std::string said_;
};

TEST_F(RecordedTest, ReplaysWorkOnTheContentsOfTheirTime) {
  const Kernel kernel = copying();
  const std::vector<View> operands{bytes(1000), bytes(1000)};
  for (int i = 1; i <= 6; ++i) {
    write(operands[0], static_cast<char>(i));
    EXPECT_EQ(run(kernel, operands), nullptr);
    EXPECT_EQ(read(operands[1]), std::vector<char>(1000, static_cast<char>(i)));
    EXPECT_EQ(ran_, 2 * i);
  }
  EXPECT_EQ(called_, 2) << "once to queue it, once to record it";
  EXPECT_EQ(said_, "");
}

TEST_F(RecordedTest, OtherArgumentsAreOtherRecordings) {
  const Kernel kernel = copying();
  const View from = bytes(100);
  const View to = bytes(100);
  const View elsewhere = bytes(100);
  const std::vector<View> one{from, to};
  const std::vector<View> other{from, elsewhere};
  const std::byte param{7};
  for (int i = 0; i < 4; ++i) {
    write(from, static_cast<char>(40 + i));
    EXPECT_EQ(run(kernel, one), nullptr);
    write(from, static_cast<char>(60 + i));
    EXPECT_EQ(run(kernel, other), nullptr);
    EXPECT_EQ(read(to), std::vector<char>(100, static_cast<char>(40 + i)));
    EXPECT_EQ(read(elsewhere), std::vector<char>(100, static_cast<char>(60 + i)));
    EXPECT_EQ(run(kernel, one, {&param, 1}), nullptr);
  }
  EXPECT_EQ(called_, 6);
}

// More than are kept: the oldest is destroyed, perhaps while it runs, and made again.
TEST_F(RecordedTest, OldRecordingsMakeRoom) {
  const Kernel kernel = copying();
  const View from = bytes(100);
  const View to = bytes(100);
  const std::vector<View> operands{from, to};
  write(from, 5);
  constexpr int times = 3;
  constexpr int many = 40;
  for (int i = 0; i < many; ++i) {
    const auto param = static_cast<std::byte>(i);
    for (int k = 0; k < times; ++k) EXPECT_EQ(run(kernel, operands, {&param, 1}), nullptr);
  }
  EXPECT_EQ(called_, 2 * many);
  EXPECT_EQ(ran_, 2 * times * many);
  const std::byte first{0};
  EXPECT_EQ(run(kernel, operands, {&first, 1}), nullptr);
  EXPECT_EQ(called_, 2 * many + 1) << "the first was kept";
  EXPECT_EQ(read(to), std::vector<char>(100, 5));
}

TEST_F(RecordedTest, WhatWaitsIsQueuedEachTime) {
  int called = 0;
  const Kernel kernel = recorded([&](const Arguments& call) {
    ++called;
    check(cudaMemcpyAsync(call.operands[1].data, call.operands[0].data, bytes_of(call.operands[0]),
                          cudaMemcpyDeviceToDevice, stream_of(call)),
          "a copy");
    check(cudaStreamSynchronize(stream_of(call)), "waiting for a copy");
    check(cudaLaunchHostFunc(stream_of(call), count_run, &ran_), "counting");
  });
  const std::vector<View> operands{bytes(100), bytes(100)};
  for (int i = 1; i <= 4; ++i) {
    write(operands[0], static_cast<char>(i));
    EXPECT_EQ(run(kernel, operands), nullptr);
    EXPECT_EQ(read(operands[1]), std::vector<char>(100, static_cast<char>(i)));
    EXPECT_EQ(ran_, i);
  }
  EXPECT_EQ(called, 5) << "one of them in vain";
  EXPECT_NE(said_.find("waiting for a copy"), std::string::npos) << said_;
}

TEST_F(RecordedTest, AVariantThatThrowsFailsItsLaunchAlone) {
  bool throws = false;
  const Kernel kernel = recorded([&](const Arguments& call) {
    check(cudaLaunchHostFunc(stream_of(call), count_run, &ran_), "counting");
    if (throws) fail(Errc::task_failed, "on purpose");
  });
  const std::vector<View> operands{bytes(100)};
  EXPECT_EQ(run(kernel, operands), nullptr);
  throws = true;
  EXPECT_THROW(std::rethrow_exception(run(kernel, operands)), Error);
  throws = false;
  EXPECT_EQ(run(kernel, operands), nullptr);
  EXPECT_EQ(ran_, 3);
}

TEST_F(RecordedTest, RecordingsEndWithTheirVariant) {
  const std::vector<View> operands{bytes(1000), bytes(1000)};
  for (int i = 0; i < 3; ++i) {
    const Kernel kernel = copying();
    for (int k = 0; k < 3; ++k) EXPECT_EQ(run(kernel, operands), nullptr);
  }
  EXPECT_EQ(called_, 6);
  EXPECT_EQ(ran_, 18);
}

}  // namespace
}  // namespace quadriga
