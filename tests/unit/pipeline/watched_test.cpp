// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/watched_test.cpp: threads that look at a run, and change its order.
#include <atomic>
#include <thread>

#include "flow_fixture.h"
#include "pipeline/flow_stats.h"

namespace quadriga {
namespace {

using WatchedTest = FlowTest;

/// Figures of a run never go back.
void expect_later(const PipelineStats& before, const PipelineStats& after) {
  EXPECT_LE(before.chunks, after.chunks);
  EXPECT_LE(before.seconds, after.seconds);
  if (before.stages.empty()) return;
  ASSERT_EQ(before.stages.size(), after.stages.size());
  for (std::size_t i = 0; i < after.stages.size(); ++i) {
    EXPECT_LE(before.stages[i].chunks, after.stages[i].chunks);
    EXPECT_LE(before.stages[i].busy_seconds, after.stages[i].busy_seconds);
  }
}

TEST_P(WatchedTest, StatisticsAreToldFromBeforeTheRunToItsEnd) {
  constexpr std::uint64_t chunks = 2000;
  Pipeline pipeline(options());
  std::atomic<std::uint64_t> looks{0};
  std::atomic<bool> is_watched{false};
  std::atomic<bool> has_ended{false};
  pipeline.source(numbers(random_lengths(chunks, 3)))
      .kernel(double_, {reads("x"), writes("y", like_x)})
      .serial([&](Chunk& chunk) {
        // So that some looks are certainly made while chunks are on their way.
        if (chunk.number() % 500 == 250)
          for (const auto seen = looks.load(); looks.load() < seen + 2;) std::this_thread::yield();
      });
  std::uint64_t seen_between = 0;
  std::thread watcher([&] {
    PipelineStats before = pipeline.stats();
    EXPECT_TRUE(before.stages.empty());
    is_watched.store(true);
    while (!has_ended.load()) {
      const PipelineStats now = pipeline.stats();
      expect_later(before, now);
      if (now.chunks > 0 && now.chunks < chunks) ++seen_between;
      pipeline.set_order(looks.load() % 2 == 0 ? Order::largest : Order::adaptive);
      EXPECT_TRUE(pipeline.failures().empty());
      before = now;
      ++looks;
    }
  });
  while (!is_watched.load()) std::this_thread::yield();
  const PipelineStats last = pipeline.run();
  has_ended.store(true);
  watcher.join();
  EXPECT_EQ(last.chunks, chunks);
  EXPECT_GE(seen_between, 4u);
}

TEST_P(WatchedTest, AnotherThreadStopsIt) {
  Pipeline pipeline(options());
  std::atomic<std::uint64_t> seen{0};
  pipeline.source([](Chunk& chunk) { return chunk.add("x", 8, 1, DType::float64), true; })
      .serial([&](Chunk&) { ++seen; });
  std::thread stopper([&] {
    while (pipeline.stats().chunks < 100) std::this_thread::yield();
    pipeline.stop();
  });
  const PipelineStats stats = pipeline.run();
  stopper.join();
  EXPECT_GE(stats.chunks, 100u);
  EXPECT_LE(stats.chunks, seen.load());
}

// The run's end is read from the clock before others that look at it have read theirs.
TEST(FlowStatsTest, SecondsDontGoBackAtTheEnd) {
  const Machine machine = Machine::parse("cpu:1");
  const std::vector<Stage> stages;
  FlowStats stats(machine, stages, 1);
  stats.begin(100);
  const PipelineStats before = stats.tell(2'000);
  stats.end(1'500);
  expect_later(before, stats.tell(3'000));
  EXPECT_DOUBLE_EQ(stats.tell(4'000).seconds, 1.9e-6);
}

INSTANTIATE_TEST_SUITE_P(, WatchedTest, all_engines(), engine_name);

}  // namespace
}  // namespace quadriga
