// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/host_stages_test.cpp: how bodies on the host share the cores.
#include <gtest/gtest.h>
#include <quadriga/pipeline.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace quadriga {
namespace {

using Clock = std::chrono::steady_clock;

void keep_busy(std::chrono::microseconds time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
  }
}

TEST(HostStages, QuickBodiesThatShareATaskLeaveTheOtherCoresTheirOwn) {
  constexpr std::uint64_t quick_chunks = 1000;
  PipelineOptions options;
  options.devices = "cpu:2";
  Pipeline pipeline(options);
  std::atomic<int> seen{0};
  bool have_met = false;
  pipeline.source([](Chunk& chunk) { return chunk.number() < quick_chunks + 64; })
      .parallel([&](Chunk& chunk) {
        if (chunk.number() < quick_chunks) return keep_busy(std::chrono::microseconds(5));
        if (seen.fetch_add(1) > 0) return;
        const auto end = Clock::now() + std::chrono::seconds(240);
        while (seen.load() == 1 && Clock::now() < end) std::this_thread::yield();
        have_met = seen.load() > 1;
      });
  EXPECT_EQ(pipeline.run().chunks, quick_chunks + 64);
  EXPECT_TRUE(have_met);
}

TEST(HostStages, NoMoreBodiesAtOnceThanThreadsHoweverManyCores) {
  PipelineOptions options;
  options.devices = "cpu:2";
  options.threads = 1;
  Pipeline pipeline(options);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  pipeline.source([](Chunk& chunk) { return chunk.number() < 300; }).parallel([&](Chunk&) {
    most.store(std::max(most.load(), inside.fetch_add(1) + 1));
    keep_busy(std::chrono::microseconds(200));  // alone in its task
    inside.fetch_sub(1);
  });
  EXPECT_EQ(pipeline.run().chunks, 300u);
  EXPECT_EQ(most.load(), 1);
}

}  // namespace
}  // namespace quadriga
