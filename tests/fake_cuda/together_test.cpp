// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/together_test.cpp: programs of several devices as an engine's tasks that start
// together, among other tasks.
#include <gtest/gtest.h>
#include <quadriga/engine.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/recorded_together.h"
#include "engine/engine_access.h"
#include "fake_cuda/streams.h"
#include "graph/gang.h"

namespace quadriga {
namespace {

constexpr std::int64_t length = 1000;

struct Batch {
  explicit Batch(std::uint32_t members)
      : gang(std::make_shared<Gang>(members)), meeting(members, gang->broken) {}
  std::shared_ptr<Gang> gang;
  Meeting meeting;
};

/// Kernels of tests, which run on the stream's thread.
template <class Body>
void push(const Arguments& call, Body body) {
  static_cast<cudaStream_t>(call.stream)->push(std::move(body));
}

/// Each member adds the next one's values to its own: first to a tile of its own, as the one before
/// it may not have read them.
class TogetherTest : public testing::Test {
 protected:
  explicit TogetherTest(int devices = 2) {
    fake_cuda::faults().devices = devices;
    engine_ = std::make_unique<Engine>(
        EngineOptions{"cuda:" + std::to_string(devices) + ",memory=16MiB"});
    plus_one_ = {"plus one", {Access::update}};
    plus_one_.cuda = [](const Arguments& call) {
      auto* const x = call.operands[0].as<std::uint64_t>();
      push(call, [x] {
        for (std::int64_t i = 0; i < length; ++i) ++x[i];
      });
    };
    const auto members = static_cast<std::size_t>(devices);
    const std::vector<Kernel> variants =
        recorded_together(members, [](const DeviceQueues& queues) { queue_round(queues); });
    for (std::size_t i = 0; i < members; ++i) {
      Codelet& made = add_next_.emplace_back(Codelet{"add next", {Access::update, Access::write}});
      made.cuda = variants[i];
      made.waits_to_queue = true;
      values_.emplace_back(length, 1 + i);
      sums_.emplace_back(length);
      value_.push_back(add(values_.back()));
      sum_.push_back(add(sums_.back()));
    }
  }
  ~TogetherTest() override {
    engine_.reset();
    fake_cuda::faults().devices = fake_cuda::devices_by_default();
  }

  static void queue_round(const DeviceQueues& queues) {
    const std::size_t count = queues.members.size();
    for (std::size_t i = 0; i < count; ++i) {
      queues.turn_to(i);
      const Arguments& own = queues.members[i];
      const auto* const x = own.operands[0].as<const std::uint64_t>();
      const auto* const next =
          queues.members[(i + 1) % count].operands[0].as<const std::uint64_t>();
      auto* const sum = own.operands[1].as<std::uint64_t>();
      push(own, [=] {
        for (std::int64_t k = 0; k < length; ++k) sum[k] = x[k] + next[k];
      });
    }
    queues.meet();
    for (std::size_t i = 0; i < count; ++i) {
      queues.turn_to(i);
      const Arguments& own = queues.members[i];
      auto* const x = own.operands[0].as<std::uint64_t>();
      const auto* const sum = own.operands[1].as<const std::uint64_t>();
      push(own, [=] { std::copy_n(sum, length, x); });
    }
  }
  Data add(std::vector<std::uint64_t>& memory) {
    return engine_->data(memory.data(), length, 1, length, DType::float64);
  }
  /// The same on the host.
  static void round_on_host(std::vector<std::uint64_t>& expected) {
    const std::vector<std::uint64_t> before = expected;
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] += before[(i + 1) % expected.size()];
  }
  void submit_round() {
    Batch& batch = batches_.emplace_back(static_cast<std::uint32_t>(value_.size()));
    const MeetingParams params{&batch.meeting};
    std::vector<GangTask> tasks;
    for (std::size_t i = 0; i < value_.size(); ++i)
      tasks.push_back({&add_next_[i],
                       {{value_[i], Access::update}, {sum_[i], Access::write}},
                       static_cast<DeviceId>(i),
                       std::as_bytes(std::span(&params, 1))});
    EngineAccess::submit_together(*engine_, tasks, batch.gang);
  }
  void expect(const std::vector<std::uint64_t>& expected) {
    engine_->wait();
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(values_[i], std::vector<std::uint64_t>(length, expected[i])) << "member " << i;
  }

  std::unique_ptr<Engine> engine_;
  Codelet plus_one_;
  std::deque<Codelet> add_next_;
  std::deque<std::vector<std::uint64_t>> values_, sums_;
  std::vector<Data> value_, sum_;
  std::deque<Batch> batches_;
};

class TogetherOnThreeTest : public TogetherTest {
 protected:
  TogetherOnThreeTest() : TogetherTest(3) {}
};

TEST_F(TogetherTest, FollowEachOtherAndOtherTasks) {
  std::vector<std::uint64_t> expected{1, 2};
  const std::uint64_t launched = fake_cuda::launched_graphs();
  for (int i = 0; i < 30; ++i) {
    submit_round();
    round_on_host(expected);
    if (i % 3 > 0) continue;
    engine_->submit(plus_one_, {{value_[i % 2], Access::update}});
    ++expected[i % 2];
  }
  expect(expected);
  EXPECT_GT(fake_cuda::launched_graphs(), launched) << "nothing was replayed";
  for (const Batch& each : batches_) EXPECT_TRUE(each.meeting.has_ended());
}

TEST_F(TogetherOnThreeTest, FollowEachOtherAndOtherTasks) {
  std::vector<std::uint64_t> expected{1, 2, 3};
  for (int i = 0; i < 30; ++i) {
    submit_round();
    round_on_host(expected);
    engine_->submit(plus_one_, {{value_[i % 3], Access::update}});
    ++expected[i % 3];
  }
  expect(expected);
}

// Gangs of several threads come in one order on all devices.
TEST_F(TogetherTest, MayBeSubmittedByManyThreads) {
  constexpr int threads = 3, rounds = 10;
  std::mutex mutex;
  std::vector<std::uint64_t> expected{1, 2};
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i)
    running.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        const std::lock_guard lock(mutex);  // Of the test's own lists.
        submit_round();
        round_on_host(expected);
      }
    });
  for (std::thread& each : running) each.join();
  expect(expected);
}

TEST_F(TogetherTest, EndWhereAMemberCannotRun) {
  Codelet fails{"fails", {Access::update}};
  fails.cuda = [](const Arguments&) { throw Error(Errc::io, "no such file"); };
  submit_round();
  engine_->submit(fails, {{value_[1], Access::update}});
  submit_round();
  submit_round();
  EXPECT_THROW(engine_->wait(), Error);
}

}  // namespace
}  // namespace quadriga
