// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/device_programs_test.cpp: programs of several devices on the CUDA backend: what is
// recorded, in which order it runs, and what becomes of a member that is left alone.
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
#include "device/recorded_together.h"

namespace quadriga {
namespace {

using cuda::check;

cudaStream_t stream_of(const Arguments& call) { return static_cast<cudaStream_t>(call.stream); }

void queue_copy(const Arguments& by, const View& to, const View& from) {
  check(cudaMemcpyAsync(to.data, from.data, bytes_of(from), cudaMemcpyDefault, stream_of(by)),
        "a copy");
}

/// Each member has two tiles. A round copies the next member's first tile to the own second one,
/// and once all have done so, that to the own first one: contents go round.
void queue_rounds(const DeviceQueues& queues, std::int64_t rounds) {
  const std::size_t count = queues.members.size();
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      queues.turn_to(i);
      const Arguments& own = queues.members[i];
      queue_copy(own, own.operands[1], queues.members[(i + 1) % count].operands[0]);
    }
    queues.meet();
    for (std::size_t i = 0; i < count; ++i) {
      queues.turn_to(i);
      const Arguments& own = queues.members[i];
      queue_copy(own, own.operands[0], own.operands[1]);
    }
    queues.meet();
  }
}

class DeviceProgramTest : public testing::Test {
 protected:
  struct Params : MeetingParams {
    std::int64_t rounds = 1;
  };
  struct Member {
    SpaceId space = host_space;
    StreamId stream = 0;
    std::vector<View> operands;
    Params params;
  };

  void SetUp() override {
    if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
    Machine machine = discover_cuda();
    if (machine.devices.size() < 2) GTEST_SKIP() << "one GPU";
    for (Device& device : machine.devices) device.memory_bytes = std::size_t{64} << 20;
    backend_ = make_cuda_backend(machine);
    for (DeviceId device = 0; device < 2; ++device) {
      Member& made = members_.emplace_back();
      made.space = machine.devices[device].space;
      made.stream = backend_->create_stream(device, StreamKind::compute);
      for (int i = 0; i < 2; ++i)
        made.operands.push_back(
            {backend_->allocate(device, tile_bytes), tile_bytes, 1, tile_bytes, DType::bytes});
      write(made, static_cast<char>('a' + device));
    }
    set_log_sink([this](LogLevel, std::string_view message) { said_ += message; });
  }
  void TearDown() override {
    set_log_sink({});
    backend_.reset();
  }

  std::exception_ptr end_of_next() {
    Completion ended;
    while (backend_->next_completion({&ended, 1}, never) == 0) {
    }
    return ended.error;
  }
  void write(const Member& member, char value) {
    const std::vector<char> values(tile_bytes, value);
    backend_->copy(member.stream,
                   {host_space, member.space, reinterpret_cast<const std::byte*>(values.data()),
                    member.operands[0].as<std::byte>(), values.size()});
    EXPECT_EQ(end_of_next(), nullptr);
  }
  /// The value that all of a member's first tile has; else 0.
  char value_of(const Member& member) {
    std::vector<char> values(tile_bytes);
    backend_->copy(member.stream, {member.space, host_space, member.operands[0].as<std::byte>(),
                                   reinterpret_cast<std::byte*>(values.data()), values.size()});
    EXPECT_EQ(end_of_next(), nullptr);
    return values == std::vector<char>(tile_bytes, values[0]) ? values[0] : '\0';
  }
  std::string values() { return {value_of(members_[0]), value_of(members_[1])}; }

  /// The member lives until it has ended.
  void launch(Member& member, const Kernel& kernel, Meeting& meeting, std::int64_t rounds) {
    member.params.meeting = &meeting;
    member.params.rounds = rounds;
    Launch launch;
    launch.kernel = &kernel;
    launch.arguments = {member.operands, std::as_bytes(std::span(&member.params, 1)), nullptr};
    launch.name = "together";
    launch.waits = launch.meets = true;
    backend_->launch(member.stream, launch);
  }
  /// To its end; the errors, null each if all is well.
  std::vector<std::exception_ptr> run(const std::vector<Kernel>& kernels, std::int64_t rounds) {
    Meeting& meeting = meetings_.emplace_back(2, broken_);
    for (const std::size_t index : {0, 1}) launch(members_[index], kernels[index], meeting, rounds);
    return {end_of_next(), end_of_next()};
  }
  std::vector<Kernel> going_round() {
    return recorded_together(2, [this](const DeviceQueues& queues) {
      ++queued_;
      queue_rounds(queues, queues.members[0].param<Params>().rounds);
    });
  }

  static constexpr std::size_t tile_bytes = 100'000;
  const std::vector<std::exception_ptr> well_{nullptr, nullptr};
  std::unique_ptr<Backend> backend_;
  std::vector<Member> members_;
  std::deque<Meeting> meetings_;
  std::atomic<bool> broken_{false};
  std::atomic<int> queued_{0};
  std::string said_;
};

TEST_F(DeviceProgramTest, RunsInOrderWhenItIsQueuedAndWhenItIsReplayed) {
  const std::vector<Kernel> kernels = going_round();
  bool turned = false;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(run(kernels, 5), well_);
    turned = !turned;
    EXPECT_EQ(values(), turned ? "ba" : "ab");
  }
  EXPECT_EQ(queued_, 2) << "once to queue it, once to record it";
  EXPECT_EQ(said_, "");
}

TEST_F(DeviceProgramTest, SeveralMayBeQueuedBehindEachOther) {
  const std::vector<Kernel> kernels = going_round();
  constexpr int launches = 9;
  std::deque<std::vector<Member>> of_launches;
  for (int i = 0; i < launches; ++i) {
    Meeting& meeting = meetings_.emplace_back(2, broken_);
    std::vector<Member>& members = of_launches.emplace_back(members_);
    for (const std::size_t index : {0, 1}) launch(members[index], kernels[index], meeting, 3);
  }
  for (int i = 0; i < 2 * launches; ++i) EXPECT_EQ(end_of_next(), nullptr);
  EXPECT_EQ(values(), "ba");
}

TEST_F(DeviceProgramTest, OtherParametersAreOtherRecordings) {
  const std::vector<Kernel> kernels = going_round();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(run(kernels, 1), well_);
    EXPECT_EQ(values(), "ba");
    EXPECT_EQ(run(kernels, 3), well_);
    EXPECT_EQ(values(), "ab");
  }
  EXPECT_EQ(queued_, 4);
}

TEST_F(DeviceProgramTest, WhatWaitsIsQueuedEachTime) {
  const std::vector<Kernel> kernels = recorded_together(2, [this](const DeviceQueues& queues) {
    ++queued_;
    check(cudaStreamSynchronize(stream_of(queues.members[0])), "waiting for a stream");
    queue_rounds(queues, 1);
  });
  for (int i = 1; i <= 4; ++i) {
    EXPECT_EQ(run(kernels, 1), well_);
    EXPECT_EQ(values(), i % 2 == 1 ? "ba" : "ab");
  }
  EXPECT_EQ(queued_, 5) << "one of them in vain";
  EXPECT_NE(said_.find("waiting for a stream"), std::string::npos) << said_;
}

TEST_F(DeviceProgramTest, AMemberThatIsLeftAloneFails) {
  const std::vector<Kernel> kernels = going_round();
  launch(members_[0], kernels[0], meetings_.emplace_back(2, broken_), 1);
  broken_ = true;
  EXPECT_NE(end_of_next(), nullptr);
  broken_ = false;
  EXPECT_EQ(run(kernels, 1), well_);
  EXPECT_EQ(values(), "ba");
}

TEST_F(DeviceProgramTest, AllFailAsTheProgramDoes) {
  const std::vector<Kernel> kernels = recorded_together(2, [](const DeviceQueues& queues) {
    queue_rounds(queues, 1);
    fail(Errc::io, "no such file");
  });
  for (int i = 0; i < 3; ++i)
    for (const std::exception_ptr& error : run(kernels, 1)) {
      ASSERT_NE(error, nullptr);
      EXPECT_THROW(std::rethrow_exception(error), Error);
    }
  EXPECT_EQ(values().size(), 2) << "the streams do more";
}

}  // namespace
}  // namespace quadriga
