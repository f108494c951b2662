// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/recorded_test.cpp: recordings on devices without room for them, and on lost ones.
#include "device/recorded.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/log.h"
#include "device/cuda/cuda_backend.h"
#include "fake_cuda/streams.h"

namespace quadriga {
namespace {

using fake_cuda::faults;

class RecordedFaultsTest : public testing::Test {
 protected:
  void SetUp() override {
    backend_ = make_cuda_backend(discover_cuda());
    stream_ = backend_->create_stream(0, StreamKind::compute);
    set_log_sink([this](LogLevel, std::string_view message) { said_ += message; });
  }
  void TearDown() override {
    set_log_sink({});
    backend_.reset();
    faults().without_graphs = false;
    fake_cuda::start_anew();
  }
  std::exception_ptr run(const Kernel& kernel) {
    Launch launch;
    launch.kernel = &kernel;
    launch.name = "recorded";
    backend_->launch(stream_, launch);
    Completion ended;
    while (backend_->next_completion({&ended, 1}, never) == 0) {
    }
    return ended.error;
  }

  std::unique_ptr<Backend> backend_;
  StreamId stream_ = 0;
  std::atomic<int> ran_{0};
  std::string said_;
  const Kernel counting_ = [this](const Arguments& call) {
    static_cast<cudaStream_t>(call.stream)->push([this] { ++ran_; });
  };
};

TEST_F(RecordedFaultsTest, WithoutRoomForThemVariantsAreQueued) {
  faults().without_graphs = true;
  const Kernel kernel = recorded(counting_);
  const std::uint64_t before = fake_cuda::launched_graphs();
  for (int i = 1; i <= 4; ++i) {
    EXPECT_EQ(run(kernel), nullptr);
    EXPECT_EQ(ran_, i);
  }
  EXPECT_EQ(fake_cuda::launched_graphs(), before);
  EXPECT_NE(said_.find("queued each time"), std::string::npos);
}

TEST_F(RecordedFaultsTest, NothingIsLeftOfThem) {
  const int before = fake_cuda::living_graphs();
  {
    const Kernel kernel = recorded(counting_);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run(kernel), nullptr);
    EXPECT_EQ(fake_cuda::living_graphs(), before + 1);
  }
  EXPECT_EQ(fake_cuda::living_graphs(), before);
}

TEST_F(RecordedFaultsTest, AFaultInAReplayLosesTheDevice) {
  std::atomic<bool> faulty{false};
  const Kernel kernel = recorded([&](const Arguments& call) {
    counting_(call);
    static_cast<cudaStream_t>(call.stream)->push([&faulty] {
      if (faulty) faults().operations_left = 1;  // that of this very operation
    });
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(kernel), nullptr);
  faulty = true;
  for (int i = 0; i < 2; ++i) {
    const std::exception_ptr error = run(kernel);
    try {
      ASSERT_NE(error, nullptr);
      std::rethrow_exception(error);
    } catch (const Error& lost) {
      EXPECT_EQ(lost.code(), Errc::device_lost);
    }
  }
}

}  // namespace
}  // namespace quadriga
