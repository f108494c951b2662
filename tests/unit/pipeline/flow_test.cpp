// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/flow_test.cpp: whole pipelines on cores, on emulated devices and under the
// virtual clock.
#include <gtest/gtest.h>
#include <quadriga/pipeline.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <thread>

#include "unit/pipeline/flow_fixture.h"

namespace quadriga {
namespace {

TEST_P(FlowTest, ChunksPassKernelsInARowAndResultsComeInOrder) {
  Pipeline pipeline(options());
  const std::vector<std::int64_t> lengths = random_lengths(100, 1);
  pipeline.source(numbers(lengths))
      .kernel(double_, {reads("x"), writes("y", like_x)})
      .kernel(increment_, {updates("y")});
  std::uint64_t expected = 0;
  while (const auto chunk = pipeline.next()) {
    EXPECT_EQ(chunk->number(), expected);
    const auto y = chunk->values<double>("y");
    ASSERT_EQ(static_cast<std::int64_t>(y.size()), lengths[expected]);
    for (const double value : y) ASSERT_EQ(value, 2.0 * static_cast<double>(expected) + 1);
    ++expected;
  }
  EXPECT_EQ(expected, 100u);
  const PipelineStats stats = pipeline.stats();
  EXPECT_EQ(stats.chunks, 100u);
  EXPECT_EQ(std::accumulate(stats.by_device.begin(), stats.by_device.end(), std::uint64_t{0}),
            100u);
}

TEST_P(FlowTest, BodiesOnTheHostSeeWhatKernelsWrote) {
  Pipeline pipeline(options());
  std::atomic<int> at_once{0};
  std::atomic<bool> overlapped{false};
  std::vector<std::uint64_t> order;
  double sum = 0;
  pipeline.source(numbers(random_lengths(60, 2)))
      .parallel([](Chunk& c) { c.values<double>("x")[0] += 0.5; }, "half")
      .kernel(double_, {reads("x"), writes("y", like_x)})
      .serial(
          [&](Chunk& c) {
            overlapped = overlapped || at_once.fetch_add(1) > 0;
            sum += c.values<double>("y")[0];
            at_once.fetch_sub(1);
          },
          "sum")
      .serial_in_order([&](Chunk& c) { order.push_back(c.number()); }, "order");
  const PipelineStats stats = pipeline.run();
  EXPECT_EQ(stats.chunks, 60u);
  EXPECT_FALSE(overlapped);
  EXPECT_DOUBLE_EQ(sum, 59.0 * 60 + 60);
  ASSERT_EQ(order.size(), 60u);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
}

TEST_P(FlowTest, AFailureNamesStageAndChunkAndThoseBeforeArrive) {
  Pipeline pipeline(options());
  pipeline.source(numbers(random_lengths(40, 3)))
      .kernel(double_, {reads("x"), writes("y", like_x)})
      .parallel(
          [](Chunk& c) {
            if (c.number() == 17) throw std::runtime_error("no good");
          },
          "check");
  std::uint64_t seen = 0;
  std::string message;
  try {
    while (const auto chunk = pipeline.next()) EXPECT_EQ(chunk->number(), seen++);
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_EQ(seen, 17u);
  EXPECT_EQ(message, "stage 'check' failed at chunk 17: no good");
}

TEST_P(FlowTest, AKernelThatFailsIsSkippedAndCounted) {
  Codelet picky = increment_;
  picky.name = "picky";
  picky.cpu = [](const Arguments& a) {
    if (static_cast<int>(*a.operands[0].as<double>()) % 10 == 3) throw std::runtime_error("a 3");
  };
  PipelineOptions given = options();
  given.on_error = OnError::skip;
  Pipeline pipeline(given);
  std::vector<std::uint64_t> order;
  pipeline.source(numbers(random_lengths(40, 4)))
      .kernel(picky, {updates("x")})
      .serial_in_order([&](Chunk& c) { order.push_back(c.number()); });
  const PipelineStats stats = pipeline.run();
  EXPECT_EQ(stats.chunks, 36u);
  EXPECT_EQ(stats.failed, 4u);
  EXPECT_EQ(order.size(), 36u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
  const std::vector<ChunkFailure> failures = pipeline.failures();
  ASSERT_EQ(failures.size(), 4u);
  for (const ChunkFailure& each : failures) {
    EXPECT_EQ(each.chunk.number % 10, 3u);
    EXPECT_EQ(each.stage, "picky");
  }
}

TEST_P(FlowTest, ASourceThatFailsEndsTheRunAfterItsChunks) {
  Pipeline pipeline(options());
  const Pipeline::Source inner = numbers(random_lengths(100, 5));
  std::uint64_t passed = 0;
  pipeline
      .source([&](Chunk& chunk) {
        if (chunk.number() == 12) throw std::runtime_error("the file ends too early");
        return inner(chunk);
      })
      .kernel(increment_, {updates("x")})
      .serial([&](Chunk&) { ++passed; });
  try {
    pipeline.run();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "stage 'source' failed at chunk 12: the file ends too early");
  }
  EXPECT_EQ(passed, 12u);
}

TEST_P(FlowTest, AConsumerThatLeavesStopsTheSource) {
  std::atomic<std::uint64_t> asked{0};
  {
    Pipeline pipeline(options());
    pipeline
        .source([&](Chunk& chunk) {
          ++asked;
          chunk.add("x", 100, 1, DType::float64);
          return true;  // for ever
        })
        .kernel(increment_, {updates("x")});
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(pipeline.next().has_value());
  }
  EXPECT_LT(asked.load(), 2000u);
}

TEST_P(FlowTest, AConsumerLeavesWhileChunksWaitForTheirTurn) {
  std::atomic<std::uint64_t> ended{0};
  {
    Pipeline pipeline(options());
    pipeline
        .source([&](Chunk& chunk) {
          chunk.add("x", 100, 1, DType::float64);
          return true;  // for ever
        })
        .kernel(increment_, {updates("x")})
        .serial_in_order([&](Chunk&) {
          ++ended;
          std::this_thread::sleep_for(std::chrono::microseconds(200));
        })
        .parallel([](Chunk&) {})
        .serial_in_order([](Chunk&) {});
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(pipeline.next().has_value());
  }
  EXPECT_GE(ended.load(), 20u);
}

TEST_P(FlowTest, ChunksMayFillADevicesMemory) {
  Pipeline pipeline(options());  // devices of 1 MiB
  std::vector<std::int64_t> lengths = random_lengths(60, 8);
  for (std::int64_t& each : lengths) each *= 30;  // up to 480 kB, and as much for "y"
  pipeline.source(numbers(lengths)).kernel(double_, {reads("x"), writes("y", like_x)});
  std::uint64_t seen = 0;
  while (const auto chunk = pipeline.next()) {
    const auto y = chunk->values<double>("y");
    ASSERT_EQ(y[0], 2.0 * static_cast<double>(seen));
    ASSERT_EQ(y[y.size() - 1], 2.0 * static_cast<double>(seen));
    ++seen;
  }
  EXPECT_EQ(seen, 60u);
}

TEST_P(FlowTest, AStageTellsItsQueueAndWhatItWaitedFor) {
  PipelineOptions given = options();
  given.look_ahead = 8;
  Pipeline pipeline(given);
  constexpr int count = 40;
  std::size_t most = 0;
  pipeline.source(numbers(std::vector<std::int64_t>(count, 10)))
      .kernel(increment_, {updates("x")})
      .serial(
          [&](Chunk&) {
            // Long beside what the other stages take, also where other programs hold the cores.
            if (most < 2) std::this_thread::sleep_for(std::chrono::milliseconds(20));
            most = std::max(most, pipeline.stats().stages.back().queue);
          },
          "slow");
  const PipelineStats stats = pipeline.run();
  const StageStats& slow = stats.stages.back();
  EXPECT_EQ(slow.queue, 0u);
  EXPECT_NEAR(slow.mean_queue * stats.seconds, slow.waiting_seconds, 1e-9);
  EXPECT_LE(slow.latency_median, slow.latency_99);
  for (const StageStats& each : stats.stages) EXPECT_EQ(each.queue, 0u) << each.name;
  if (GetParam() == Where::virtual_clock) return;  // bodies take no time there
  EXPECT_GT(most, 1u);
  EXPECT_GT(slow.mean_queue, 0.0);
  EXPECT_GT(slow.latency_99, 15e-3);
  EXPECT_GT(slow.busy_seconds, 20e-3);
  EXPECT_NEAR(slow.occupancy * stats.seconds, slow.busy_seconds, 1e-9);
  EXPECT_NEAR(slow.chunks_per_second, count / stats.seconds, 1e-6 / stats.seconds);
  EXPECT_GT(stats.stages[0].reserve_seconds, 0.0);  // the source had no room
}

TEST_P(FlowTest, NeverMoreHostMemoryThanStated) {
  PipelineOptions given = options();
  given.host_memory = "64KiB";
  Pipeline pipeline(given);
  pipeline.source(numbers(random_lengths(300, 6)))
      .kernel(double_, {reads("x"), writes("y", like_x)});
  std::uint64_t seen = 0;
  while (const auto chunk = pipeline.next()) EXPECT_EQ(chunk->number(), seen++);
  EXPECT_EQ(seen, 300u);
  EXPECT_LE(pipeline.stats().most_host_bytes, 65536u);
  EXPECT_GT(pipeline.stats().most_host_bytes, 16384u);
}

TEST_P(FlowTest, AChunkThatCantPassIsRefusedWithBothSizes) {
  PipelineOptions given = options();
  given.host_memory = "10000B";
  Pipeline pipeline(given);
  pipeline.source(numbers({100, 2000})).kernel(increment_, {updates("x")});
  try {
    pipeline.run();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::too_large);
    EXPECT_NE(std::string(error.what()).find("16000"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("10000"), std::string::npos) << error.what();
  }
}

TEST_P(FlowTest, AFieldThatIsMissingIsNamed) {
  Pipeline pipeline(options());
  pipeline.source(numbers({10})).kernel(increment_, {updates("z")});
  try {
    pipeline.run();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("has no field 'z'; it has 'x'"), std::string::npos)
        << error.what();
  }
}

TEST_P(FlowTest, TemporariesAndConstantsStayOnTheDevice) {
  std::vector<double> weights(8, 3.0);
  const View constant_view{weights.data(), 8, 1, 8, DType::float64};
  Codelet scale;
  scale.name = "scale";
  scale.access = {Access::read, Access::read, Access::write};
  scale.cpu = [](const Arguments& a) {
    for (std::int64_t i = 0; i < a.operands[0].rows; ++i)
      a.operands[2].as<double>()[i] = a.operands[0].as<double>()[i] * a.operands[1].as<double>()[7];
  };
  scale.cost = double_.cost;
  Pipeline pipeline(options());
  pipeline.source(numbers(random_lengths(30, 7)))
      .kernel(scale, {reads("x"), constant("w", constant_view), temporary("t", like_x)})
      .kernel(increment_, {updates("t")})
      .kernel(double_, {reads("t"), writes("y", like_x)});
  std::uint64_t seen = 0;
  while (const auto chunk = pipeline.next(false)) {
    EXPECT_EQ(chunk->values<double>("y")[0], 2 * (3.0 * static_cast<double>(chunk->number()) + 1));
    EXPECT_EQ(chunk->find("t"), nullptr);
    ++seen;
  }
  EXPECT_EQ(seen, 30u);
}

TEST(OrderTest, ChangesWhileTheRunGoesOn) {
  EngineOptions engine_options;
  engine_options.machine = Machine::parse("emulated:1,memory=1GiB,h2d=1GB/s,d2h=1GB/s");
  engine_options.virtual_clock = true;
  Engine engine(engine_options);
  Codelet nothing;
  nothing.name = "nothing";
  nothing.access = {Access::update};
  nothing.cpu = [](const Arguments&) {};
  nothing.cost = [](const Arguments&) { return Cost::of_seconds(1e-3); };
  Pipeline pipeline({.engine = &engine, .order = Order::smallest});
  std::vector<std::int64_t> seen;
  pipeline
      .source([](Chunk& chunk) {
        chunk.add("x", static_cast<std::int64_t>(1000 * (chunk.number() + 1)), 1, DType::float64);
        return chunk.number() < 40;
      })
      .kernel(nothing, {updates("x")})
      .serial([&](Chunk& chunk) {
        seen.push_back(chunk["x"].rows);
        if (seen.size() == 10) pipeline.set_order(Order::largest);
      });
  pipeline.run();
  ASSERT_EQ(seen.size(), 40u);
  const auto turn = seen.begin() + 10 + 3;  // what was on the device then comes first
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.begin() + 10));
  EXPECT_TRUE(std::is_sorted(turn, seen.end(), std::greater{}));
  EXPECT_EQ(*std::max_element(seen.begin(), turn + 1), 40'000) << "the largest comes next";
}

TEST(HostTimeTest, TheVirtualClockCountsWhatStagesOnTheHostTake) {
  for (const bool computes : {true, false}) {
    EngineOptions engine_options;
    engine_options.machine = Machine::parse("emulated:1,memory=1GiB,h2d=1GB/s,d2h=1GB/s;cpu:4");
    engine_options.virtual_clock = true;
    engine_options.compute = computes;
    Engine engine(engine_options);
    Codelet nothing;
    nothing.name = "nothing";
    nothing.access = {Access::update};
    nothing.cpu = [](const Arguments&) {};
    nothing.cost = [](const Arguments&) { return Cost{"nothing", 0, 0}; };
    PipelineOptions options;
    options.engine = &engine;
    options.threads = 2;
    const auto stated = [&](double source, double each, double last) {
      Pipeline pipeline(options);
      int calls = 0;
      pipeline
          .source([](Chunk& chunk) {
            chunk.add("x", 1000, 1, DType::float64);
            return chunk.number() < 40;
          })
          .parallel([](Chunk&) {}, "each")
          .kernel(nothing, {updates("x")})
          .serial([&](Chunk&) { ++calls; }, "last")
          .takes("source", source)
          .takes("each", [each](const Chunk& c) { return c.number() % 2 == 0 ? each : 0.0; })
          .takes("last", last);
      std::vector<Chunk> like;
      for (std::uint64_t n = 0; n < 40; ++n) like.emplace_back(n).add("x", 1000, 1, DType::float64);
      const PipelineEstimate estimate = pipeline.estimate(like);
      const PipelineStats stats = pipeline.run();
      EXPECT_EQ(calls, 40);
      EXPECT_EQ(stats.limit, estimate.limit);
      EXPECT_NEAR(stats.bound_seconds, estimate.seconds, 0.01 * estimate.seconds);
      EXPECT_GE(stats.seconds, stats.bound_seconds);
      EXPECT_LE(stats.seconds, 1.1 * stats.bound_seconds);
      return stats;
    };
    EXPECT_EQ(stated(0.1, 0.05, 0.02).limit, "source");
    EXPECT_NEAR(stated(0.1, 0.05, 0.02).seconds, 4.0, 0.2);
    EXPECT_EQ(stated(0.01, 0.4, 0.02).limit, "the host's cores");
    EXPECT_NEAR(stated(0.01, 0.4, 0.02).seconds, 4.0, 0.3);
    const PipelineStats stats = stated(0.01, 0.05, 0.2);
    EXPECT_EQ(stats.limit, "last");
    EXPECT_NEAR(stats.stages.back().busy_seconds, 8.0, 1e-6);
    EXPECT_GT(stats.stages.back().mean_queue, 5);
  }
}

TEST(HostTimeTest, AStageThatThereIsntIsNamed) {
  PipelineOptions options;
  options.devices = "cpu:1";
  Pipeline pipeline(options);
  EXPECT_THROW(pipeline.takes("last", 1.0), Error);
}

INSTANTIATE_TEST_SUITE_P(Engines, FlowTest, all_engines(), engine_name);

}  // namespace
}  // namespace quadriga
