// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/issuers_test.cpp: threads that queue, each on its device, while another one takes
// what ended: brief kernels, which share events, and faults.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/random.h"
#include "device/cuda/cuda_backend.h"
#include "device/cuda/stream_table.h"
#include "fake_cuda/streams.h"
#include "gpu/sleep.h"
#include "model/graph/random_program.h"

namespace quadriga {
namespace {

Nanoseconds now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// An issuer queues and waits at random; it owns all but what is atomic.
class BriefKernels {
 public:
  static constexpr std::uint32_t streams = 3;
  static constexpr int most = 1500;

  explicit BriefKernels(std::uint64_t seed) : random_(seed) {
    for (std::uint32_t s = 0; s < streams; ++s) table_.create(0, StreamKind::compute);
  }
  ~BriefKernels() { table_.synchronize(); }

  void issue() {
    for (int i = 0; i < most; ++i) {
      const auto stream = static_cast<std::uint32_t>(random_.below(streams));
      const auto source = static_cast<std::uint32_t>(random_.below(streams));
      if (random_.below(4) == 0 && stream != source && table_.issued(source) > 0) {
        const std::uint64_t ticket = 1 + random_.below(table_.issued(source));
        table_.wait(stream, source, ticket);
        awaited_[stream][source] = std::max(awaited_[stream][source], ticket);
      }
      queue(stream);
      if (random_.below(100) == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    is_over_ = true;
  }
  // True once all that was queued has been taken.
  bool sweep() {
    const bool was_over = is_over_;
    table_.sweep(now(), found_);
    while (!found_.empty()) {
      const Event event = found_.pop().event;
      EXPECT_EQ(event.ticket, ++retired_[event.stream]);
      EXPECT_LE(event.ticket, reached_[event.stream].load()) << "ended before it had";
    }
    return was_over && table_.idle();
  }
  int early() const { return early_; }

 private:
  void queue(std::uint32_t stream) {
    cuda::StreamTable::Queued& queued = table_.begin(stream, now(), "brief");
    queued.native->push([this, stream, awaited = awaited_[stream]] {
      for (std::uint32_t s = 0; s < streams; ++s)
        if (reached_[s].load() < awaited[s]) ++early_;
      ++reached_[stream];
    });
    table_.end(stream);
  }

  Random random_;
  std::array<std::array<std::uint64_t, streams>, streams> awaited_{};
  std::array<std::atomic<std::uint64_t>, streams> reached_{};
  std::array<std::uint64_t, streams> retired_{};
  std::atomic<int> early_{0};
  std::atomic<bool> is_over_{false};
  Ring<Completion> found_;
  cuda::StreamTable table_{{0}, {}, 20'000'000};
};

TEST(IssuersTest, BriefKernelsShareEventsWhileTheDriverSweeps) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    BriefKernels kernels(seed);
    std::jthread issuer([&] { kernels.issue(); });
    const Nanoseconds until = now() + 60'000'000'000;
    bool all = false;
    while (!all && now() < until) all = kernels.sweep();
    EXPECT_TRUE(all) << "hangs";
    EXPECT_EQ(kernels.early(), 0);
  }
}

constexpr std::size_t block_bytes = std::size_t{1} << 20;

// A GPU, its issuer's streams, and the user's memory that they copy.
class Issuer {
 public:
  Issuer(Backend& backend, DeviceId device, std::uint64_t seed)
      : backend_(backend), device_(device), random_(seed) {
    for (const StreamKind kind : {StreamKind::copy_in, StreamKind::copy_out, StreamKind::compute})
      streams_.push_back(backend.create_stream(device, kind));
    block_ = backend.allocate(device, block_bytes);
    for (int i = 0; i < operations; ++i)
      homes_.emplace_back(1 + random_.below(random_.chance(0.2) ? block_bytes : 10'000));
  }
  void issue(std::span<const Issuer> all, int fault) {
    for (int i = 0; i < operations; ++i) {
      if (random_.chance(0.5)) wait(all[random_.below(all.size())]);
      const StreamId stream = streams_[random_.below(streams_.size())];
      if (i == fault || random_.chance(0.4))
        launch(stream, i == fault);
      else
        copy(stream, homes_[static_cast<std::size_t>(i)]);
    }
  }
  static constexpr int operations = 60;

 private:
  void wait(const Issuer& other) {
    Event event;
    {
      const std::lock_guard lock(other.mutex_);
      event = other.last_;
    }
    backend_.wait(streams_[random_.below(streams_.size())], event);
  }
  void launch(StreamId stream, bool faults) {
    Launch launch;
    launch.kernel = faults ? &fault_ : &brief_;
    launch.name = faults ? "careless" : "careful";
    launch.waits = !faults && random_.chance(0.2);
    made(backend_.launch(stream, launch));
  }
  void copy(StreamId stream, std::vector<std::byte>& home) {
    const auto space = static_cast<SpaceId>(device_ + 1);
    if (random_.chance(0.5))
      made(backend_.copy(stream, {host_space, space, home.data(), block_, home.size()}));
    else
      made(backend_.copy(stream, {space, host_space, block_, home.data(), home.size()}));
  }
  void made(Event event) {
    const std::lock_guard lock(mutex_);
    last_ = event;
  }

  Backend& backend_;
  const DeviceId device_;
  Random random_;
  std::vector<StreamId> streams_;
  std::byte* block_ = nullptr;
  std::deque<std::vector<std::byte>> homes_;
  mutable std::mutex mutex_;
  Event last_;  // Guarded by mutex_.
  const Kernel brief_ = [](const Arguments& call) { queue_sleep(call.stream, 0); };
  const Kernel fault_ = [](const Arguments& call) { queue_fault(call.stream); };
};

std::vector<Completion> collect(Backend& backend, std::size_t count) {
  std::vector<Completion> all;
  const Nanoseconds until = backend.now() + 60'000'000'000;
  while (all.size() < count && backend.now() < until) {
    std::array<Completion, 8> some;
    const std::size_t got = backend.next_completion(some, until);
    all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(got));
  }
  return all;
}

// The user's memory goes as soon as all has ended: threads that still copied would be caught.
TEST(IssuersTest, WhateverIsQueuedBesideAFaultEndsOnceAndInOrder) {
  constexpr std::size_t devices = 3;
  fake_cuda::faults().devices = devices;
  const Seeds seeds = test_seeds(1, 30);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    fake_cuda::faults().are_contained = random.chance(0.5);
    Machine machine = discover_cuda();
    for (Device& device : machine.devices) device.memory_bytes = std::size_t{64} << 20;
    {
      const auto backend = make_cuda_backend(machine);
      std::vector<Completion> ended;
      {
        std::array<Issuer, devices> all{Issuer(*backend, 0, seed), Issuer(*backend, 1, seed + 1),
                                        Issuer(*backend, 2, seed + 2)};
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < devices; ++i) {
          const int fault = static_cast<int>(random.below(4 * Issuer::operations));
          threads.emplace_back([&all, i, fault] { all[i].issue(all, fault); });
        }
        ended = collect(*backend, devices * Issuer::operations);
      }
      EXPECT_EQ(ended.size(), devices * Issuer::operations) << "hangs";
      std::array<std::uint64_t, devices * 3> tickets{};
      for (const Completion& each : ended)
        EXPECT_EQ(each.event.ticket, ++tickets[each.event.stream]);
    }
    fake_cuda::start_anew();
  }
  fake_cuda::faults().devices = fake_cuda::devices_by_default();
}

}  // namespace
}  // namespace quadriga
