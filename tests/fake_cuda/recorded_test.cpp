// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/recorded_test.cpp: recordings on devices without room for them, and on lost ones.
#include "device/recorded.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "device/cuda/cuda_backend.h"
#include "device/recorded_together.h"
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
    faults().granted_waits = faults().refused_waits = 0;
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

/// Programs of two devices, whose members count.
class DeviceProgramFaultsTest : public RecordedFaultsTest {
 protected:
  void SetUp() override {
    RecordedFaultsTest::SetUp();
    streams_ = {stream_, backend_->create_stream(1, StreamKind::compute)};
  }
  /// What each ended with, in the order of their ends; `see` is called at each.
  std::vector<std::exception_ptr> run_both(const std::vector<Kernel>& kernels,
                                           const std::function<void(StreamId)>& see = {}) {
    Meeting meeting(2, broken_);
    const MeetingParams params{&meeting};
    Launch launch;
    launch.arguments.params = std::as_bytes(std::span(&params, 1));
    launch.name = "together";
    launch.waits = launch.meets = true;
    for (const std::size_t i : {0, 1}) {
      launch.kernel = &kernels[i];
      backend_->launch(streams_[i], launch);
    }
    std::vector<std::exception_ptr> errors;
    for (Completion ended; errors.size() < 2;) {
      if (backend_->next_completion({&ended, 1}, never) == 0) continue;
      if (see) see(ended.event.stream);
      errors.push_back(ended.error);
    }
    return errors;
  }
  std::vector<Kernel> counting_together() {
    return recorded_together(2, [this](const DeviceQueues& queues) {
      for (const Arguments& each : queues.members) counting_(each);
      queues.meet();
      static_cast<cudaStream_t>(queues.members[1].stream)->push([this] {
        if (faulty_) faults().operations_left = 1;  // that of this very operation
      });
    });
  }

  const std::vector<std::exception_ptr> well_{nullptr, nullptr};
  std::vector<StreamId> streams_;
  std::atomic<bool> broken_{false};
  std::atomic<bool> faulty_{false};
};

TEST_F(DeviceProgramFaultsTest, WithoutRoomForThemMembersAreQueued) {
  faults().without_graphs = true;
  const std::vector<Kernel> kernels = counting_together();
  const std::uint64_t before = fake_cuda::launched_graphs();
  for (int i = 1; i <= 4; ++i) {
    EXPECT_EQ(run_both(kernels), well_);
    EXPECT_EQ(ran_, 2 * i);
  }
  EXPECT_EQ(fake_cuda::launched_graphs(), before);
  EXPECT_NE(said_.find("queued each time"), std::string::npos);
}

TEST_F(DeviceProgramFaultsTest, TheyAreOneGraphOfWhichNothingIsLeft) {
  const int before = fake_cuda::living_graphs();
  const std::uint64_t launched = fake_cuda::launched_graphs();
  {
    const std::vector<Kernel> kernels = counting_together();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(run_both(kernels), well_);
    EXPECT_EQ(fake_cuda::living_graphs(), before + 1);
    EXPECT_EQ(fake_cuda::launched_graphs(), launched + 3);
    EXPECT_EQ(ran_, 8);
  }
  EXPECT_EQ(fake_cuda::living_graphs(), before);
}

TEST_F(DeviceProgramFaultsTest, AFaultInAReplayIsALossToAllMembers) {
  const std::vector<Kernel> kernels = counting_together();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run_both(kernels), well_);
  faulty_ = true;
  for (int i = 0; i < 2; ++i)
    for (const std::exception_ptr& error : run_both(kernels)) {
      try {
        ASSERT_NE(error, nullptr);
        std::rethrow_exception(error);
      } catch (const Error& lost) {
        // After a loss a member isn't called, and whom it leaves alone learns that the gang broke.
        EXPECT_EQ(lost.code(), Errc::device_lost);
      }
    }
}

/// Of the waits of a launch that isn't replayed, the sixth begins what follows the program.
TEST_F(DeviceProgramFaultsTest, AMemberEndsAfterAllWhereItsStreamCannotWaitForTheOthers) {
  for (const std::uint64_t refused : {1, 1000}) {
    SCOPED_TRACE(refused);
    std::atomic<bool> has_ended{false};
    const std::vector<Kernel> kernels =
        recorded_together(2, [&has_ended](const DeviceQueues& queues) {
          queues.meet();
          static_cast<cudaStream_t>(queues.members[0].stream)->push([&has_ended] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            has_ended = true;
          });
        });
    faults().granted_waits = 5;
    faults().refused_waits = refused;
    const auto errors =
        run_both(kernels, [&](StreamId stream) { EXPECT_TRUE(has_ended) << "stream " << stream; });
    faults().refused_waits = 0;
    for (const std::exception_ptr& error : errors) EXPECT_NE(error, nullptr);
    EXPECT_EQ(run_both(kernels), well_);
  }
}

}  // namespace
}  // namespace quadriga
