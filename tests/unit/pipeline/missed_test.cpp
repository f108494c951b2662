// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/missed_test.cpp: sources that don't wait for room; what is dropped is told.
#include <atomic>
#include <chrono>
#include <thread>

#include "flow_fixture.h"

namespace quadriga {
namespace {

using MissedTest = FlowTest;

constexpr std::uint64_t chunks = 200;

TEST_P(MissedTest, ASourceThatDropsNeverWaitsForTheStages) {
  if (GetParam() == Where::virtual_clock) GTEST_SKIP() << "the source's time is stated there";
  std::atomic<bool> has_ended{false};
  PipelineOptions given = options();
  given.on_full = OnFull::drop;
  given.look_ahead = 4;
  Pipeline pipeline(given);
  std::vector<std::uint64_t> seen;
  const Pipeline::Source next = numbers(std::vector<std::int64_t>(chunks, 100));
  pipeline
      .source([&](Chunk& chunk) {
        const bool more = next(chunk);
        if (!more) has_ended.store(true);
        return more;
      })
      .kernel(double_, {reads("x"), writes("y", like_x)})
      .serial_in_order([&](Chunk& chunk) {
        // A source that waits for room would never end.
        for (int i = 0; i < 60'000 && !has_ended.load(); ++i)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        seen.push_back(chunk.number());
      });
  const PipelineStats stats = pipeline.run();
  EXPECT_TRUE(has_ended.load());
  EXPECT_GT(stats.missed, 0u);
  EXPECT_EQ(stats.chunks, seen.size());
  EXPECT_EQ(stats.chunks + stats.missed, chunks);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

TEST_P(MissedTest, MemoryStaysWithinWhatIsStated) {
  if (GetParam() == Where::virtual_clock) GTEST_SKIP() << "the source's time is stated there";
  PipelineOptions given = options();
  given.on_full = OnFull::drop;
  given.host_memory = "64KiB";
  Pipeline pipeline(given);
  pipeline.source(numbers(random_lengths(300, 5)))
      .kernel(double_, {reads("x"), writes("y", like_x)});
  std::uint64_t seen = 0;
  while (pipeline.next()) ++seen;
  const PipelineStats stats = pipeline.stats();
  EXPECT_EQ(seen + stats.missed, 300u);
  EXPECT_LE(stats.most_host_bytes, std::size_t{64} << 10);
}

TEST(MissedByTheVirtualClock, AsManyArriveAsTheStageTakes) {
  EngineOptions engine_options;
  engine_options.machine = Machine::parse("emulated:1,memory=1MiB;cpu:4");
  engine_options.virtual_clock = true;
  Engine engine(engine_options);
  Pipeline pipeline({.engine = &engine, .on_full = OnFull::drop, .look_ahead = 2});
  pipeline.source([](Chunk& chunk) { return chunk.number() < chunks; })
      .serial([](Chunk&) {}, "slow")
      .takes("source", 1e-3)
      .takes("slow", 4e-3);
  const PipelineStats stats = pipeline.run();
  EXPECT_EQ(stats.chunks + stats.missed, chunks);
  EXPECT_NEAR(static_cast<double>(stats.chunks), chunks / 4.0, 10);
}

TEST_P(MissedTest, TheVirtualClockAsksForTheSourcesTime) {
  if (GetParam() != Where::virtual_clock) GTEST_SKIP() << "real sources take what they take";
  PipelineOptions given = options();
  given.on_full = OnFull::drop;
  Pipeline pipeline(given);
  pipeline.source(numbers({1, 2, 3})).serial([](Chunk&) {});
  EXPECT_THROW(pipeline.run(), Error);
}

INSTANTIATE_TEST_SUITE_P(, MissedTest, all_engines(), engine_name);

}  // namespace
}  // namespace quadriga
