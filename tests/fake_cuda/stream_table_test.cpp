// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/stream_table_test.cpp: brief kernels of one device, which share events, in any
// order of queueing, waiting and asking.
#include "device/cuda/stream_table.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <random>
#include <vector>

#include "fake_cuda/streams.h"

namespace quadriga::cuda {
namespace {

constexpr std::uint32_t streams = 3;

Nanoseconds now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A table and what its streams have done.
class Chains {
 public:
  explicit Chains(Nanoseconds brief, int devices = 1) : table_(ordinals(devices), {}, brief) {
    for (std::uint32_t s = 0; s < streams; ++s)
      table_.create(static_cast<DeviceId>(s % static_cast<std::uint32_t>(devices)),
                    StreamKind::compute);
  }
  ~Chains() { table_.synchronize(); }

  void kernel(std::uint32_t stream) {
    StreamTable::Queued& queued = table_.begin(stream, now(), "brief");
    queued.native->push([this, stream, awaited = awaited_[stream]] {
      for (std::uint32_t s = 0; s < streams; ++s)
        if (reached_[s].load() < awaited[s]) ++early_;
      ++reached_[stream];
    });
    table_.end(stream);
  }
  void wait(std::uint32_t stream, std::uint32_t source, std::uint64_t ticket) {
    table_.wait(stream, source, ticket);
    if (stream != source) awaited_[stream][source] = std::max(awaited_[stream][source], ticket);
  }
  void sweep(Nanoseconds moment = now()) {
    table_.sweep(moment, found_);
    while (!found_.empty()) {
      const Event event = found_.pop().event;
      EXPECT_EQ(event.ticket, ++retired_[event.stream]);
      EXPECT_LE(event.ticket, reached_[event.stream].load()) << "ended before it had";
    }
  }
  std::uint64_t issued(std::uint32_t stream) const { return table_.issued(stream); }
  bool idle() const { return table_.idle(); }
  int early() const { return early_.load(); }

 private:
  static std::vector<int> ordinals(int devices) {
    std::vector<int> all(static_cast<std::size_t>(devices));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  std::array<std::array<std::uint64_t, streams>, streams> awaited_{};
  std::array<std::atomic<std::uint64_t>, streams> reached_{};
  std::array<std::uint64_t, streams> retired_{};
  std::atomic<int> early_{0};
  Ring<Completion> found_;
  StreamTable table_;
};

TEST(StreamTableTest, BriefKernelsEndInOrderAndAfterWhatTheyWaitFor) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t most) { return random() % most; };
    Chains chains(20'000'000);
    for (int step = 0; step < 600; ++step) {
      const auto stream = static_cast<std::uint32_t>(below(streams));
      const auto source = static_cast<std::uint32_t>(below(streams));
      const std::uint64_t kind = below(10);
      if (kind < 6)
        chains.kernel(stream);
      else if (kind < 8 && chains.issued(source) > 0)
        chains.wait(stream, source, 1 + below(chains.issued(source)));
      else
        chains.sweep();
    }
    const Nanoseconds until = now() + 20'000'000'000;
    while (!chains.idle() && now() < until) chains.sweep();
    ASSERT_TRUE(chains.idle()) << "hangs";
    EXPECT_EQ(chains.early(), 0);
  }
}

TEST(StreamTableTest, BriefKernelsShareEventsAndOthersDoNot) {
  const auto events_of_hundred = [](Nanoseconds brief) {
    Chains chains(brief);
    for (int i = 0; i < 4; ++i) {  // which tell how long they take
      chains.kernel(0);
      while (!chains.idle()) chains.sweep();
    }
    const std::uint64_t before = fake_cuda::recorded_events();
    for (int i = 0; i < 100; ++i) chains.kernel(0);
    while (!chains.idle()) chains.sweep();
    return fake_cuda::recorded_events() - before;
  };
  EXPECT_LE(events_of_hundred(200'000'000), 10U);
  EXPECT_EQ(events_of_hundred(0), 100U);
}

// No time passes for the table, so that no stream is silent for long.
TEST(StreamTableTest, StreamsOfSeveralDevicesTellTheirEndsWithoutBeingAsked) {
  std::mt19937_64 random(1);
  Chains chains(0, 2);
  const std::uint64_t before = fake_cuda::queried_events();
  for (int i = 0; i < 300; ++i) {
    const auto stream = static_cast<std::uint32_t>(random() % streams);
    const auto source = static_cast<std::uint32_t>(random() % streams);
    if (chains.issued(source) > 0)
      chains.wait(stream, source, 1 + random() % chains.issued(source));
    chains.kernel(stream);
    chains.sweep(1);
  }
  const Nanoseconds until = now() + 20'000'000'000;
  while (!chains.idle() && now() < until) chains.sweep(1);
  ASSERT_TRUE(chains.idle()) << "hangs";
  EXPECT_EQ(chains.early(), 0);
  EXPECT_EQ(fake_cuda::queried_events(), before);
}

TEST(StreamTableTest, WhatSharesAnEventEndsWithItsDevice) {
  for (std::uint64_t before = 0; before < 40; ++before) {
    StreamTable table({0}, {}, 5'000'000);
    for (std::uint32_t s = 0; s < 2; ++s) table.create(0, StreamKind::compute);
    Ring<Completion> found;
    const auto kernel = [&](std::uint32_t stream, bool faults) {
      StreamTable::Queued& queued = table.begin(stream, now(), "brief");
      const cudaStream_t native = queued.native;
      if (!queued.error && faults) native->push([native] { fake_cuda::fault(*native); });
      table.end(stream);
    };
    for (std::uint32_t s = 0; s < 2; ++s) kernel(s, false);  // which tell how long they take
    while (!table.idle()) table.sweep(now(), found);
    for (std::uint64_t i = 0; i < 60; ++i) {
      kernel(i % 2, i == before);
      if (i % 7 == 0) table.wait(1, 0, table.issued(0));
      if (i % 11 == 0) table.sweep(now(), found);
    }
    const Nanoseconds until = now() + 20'000'000'000;
    while (!table.idle() && now() < until) table.sweep(now(), found);
    EXPECT_TRUE(table.idle()) << "hangs; " << before << " kernels before the fault";
    EXPECT_EQ(found.size(), 62u);
    EXPECT_TRUE(found.at(61).error);
    table.synchronize();
    fake_cuda::start_anew();
  }
}

}  // namespace
}  // namespace quadriga::cuda
