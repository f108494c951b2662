// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/flat_map_test.cpp: chunks that become several or none, and lists of stages.
#include <gtest/gtest.h>
#include <quadriga/pipeline.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "unit/pipeline/flow_fixture.h"

namespace quadriga {
namespace {

class ManyTest : public FlowTest {
 protected:
  /// As many parts as the chunk's number modulo 5, each with "x" of two elements.
  static Pipeline::Source parts_of(Chunk& chunk) {
    const double* const x = chunk.values<double>("x").data();
    const auto count = chunk.number() % 5;
    return [x, count, made = std::uint64_t{0}](Chunk& part) mutable {
      if (made == count) return false;
      part.add("x", 2, 1, DType::float64);
      part.values<double>("x")[0] = x[0];
      part.values<double>("x")[1] = static_cast<double>(made++);
      return true;
    };
  }
  static std::vector<std::string> expected_parts(std::uint64_t chunks) {
    std::vector<std::string> found;
    for (std::uint64_t n = 0; n < chunks; ++n)
      for (std::uint64_t i = 0; i < n % 5; ++i)
        found.push_back(std::to_string(n) + "." + std::to_string(i));
    return found;
  }
};

TEST_P(ManyTest, PartsOfChunksAreResultsInOrder) {
  Pipeline pipeline(options());
  pipeline.source(numbers(random_lengths(60, 1)))
      .flat_map(parts_of)
      .kernel(double_, {reads("x"), writes("y", like_x)})
      .parallel([](Chunk& c) {
        if (c.number() % 3 == 0) std::this_thread::yield();
      });
  std::vector<std::string> found;
  while (const auto chunk = pipeline.next()) {
    found.push_back(chunk->id().text());
    EXPECT_EQ(chunk->values<double>("y")[0], 2.0 * static_cast<double>(chunk->number()));
    EXPECT_EQ(chunk->values<double>("y")[1], 2.0 * chunk->id().parts[0]);
  }
  EXPECT_EQ(found, expected_parts(60));
  EXPECT_EQ(pipeline.stats().chunks, found.size());
  EXPECT_EQ(pipeline.stats().stages[1].kind, "flat_map");
  EXPECT_EQ(pipeline.stats().stages[1].chunks, found.size());
}

TEST_P(ManyTest, PartsOfPartsKeepTheirOrder) {
  Pipeline pipeline(options());
  std::vector<std::string> found;
  pipeline.source(numbers(std::vector<std::int64_t>(20, 10)))
      .parallel([](Chunk&) {})
      .flat_map(parts_of)
      .kernel(increment_, {updates("x")})
      .flat_map(parts_of)
      .serial_in_order([&](Chunk& c) { found.push_back(c.id().text()); });
  pipeline.run();
  std::vector<std::string> expected;
  for (std::uint64_t n = 0; n < 20; ++n)
    for (std::uint64_t i = 0; i < n % 5; ++i)
      for (std::uint64_t j = 0; j < n % 5; ++j)
        expected.push_back(std::to_string(n) + "." + std::to_string(i) + "." + std::to_string(j));
  EXPECT_EQ(found, expected);
}

TEST_P(ManyTest, AChunkMayBecomeMoreThanFitsMemory) {
  PipelineOptions given = options();
  given.host_memory = "64KiB";
  Pipeline pipeline(given);
  pipeline.source(numbers({10, 20}))
      .flat_map(
          [](Chunk&) {
            return [made = 0](Chunk& part) mutable {
              part.add("x", 500, 1, DType::float64);
              part.values<double>("x")[0] = made;
              return made++ < 200;  // 800 kB
            };
          },
          "16KiB", "split")
      .kernel(increment_, {updates("x")});
  std::uint64_t seen = 0;
  while (const auto chunk = pipeline.next()) {
    EXPECT_EQ(chunk->id(), (ChunkId{seen / 200, {static_cast<std::uint32_t>(seen % 200)}}));
    EXPECT_EQ(chunk->values<double>("x")[0], static_cast<double>(seen % 200 + 1));
    ++seen;
  }
  EXPECT_EQ(seen, 400u);
  EXPECT_LE(pipeline.stats().most_host_bytes, 65536u);
}

TEST_P(ManyTest, APartThatFailsIsNamedAndThoseBeforeArrive) {
  Pipeline pipeline(options());
  pipeline.source(numbers(random_lengths(60, 2))).flat_map(parts_of).parallel([](Chunk& c) {
    if (c.id() == ChunkId{19, {2}}) throw std::runtime_error("no good");
  });
  std::vector<std::string> found;
  std::string message;
  try {
    while (const auto chunk = pipeline.next()) found.push_back(chunk->id().text());
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_EQ(message, "stage 'parallel' failed at chunk 19.2: no good");
  std::vector<std::string> expected = expected_parts(19);
  expected.insert(expected.end(), {"19.0", "19.1"});
  EXPECT_EQ(found, expected);
}

TEST_P(ManyTest, ASplitThatFailsIsSkippedBehindItsParts) {
  PipelineOptions given = options();
  given.on_error = OnError::skip;
  Pipeline pipeline(given);
  pipeline.source(numbers(random_lengths(20, 3)))
      .flat_map(
          [](Chunk& chunk) -> Pipeline::Source {
            if (chunk.number() == 3) throw std::runtime_error("not even begun");
            return [inner = parts_of(chunk), number = chunk.number()](Chunk& part) {
              if (number == 8 && part.id().parts[0] == 2) throw std::runtime_error("midway");
              return inner(part);
            };
          },
          {}, "split");
  std::vector<std::string> found;
  while (const auto chunk = pipeline.next()) found.push_back(chunk->id().text());
  std::vector<std::string> expected = expected_parts(20);
  std::erase_if(expected,
                [](const std::string& each) { return each.starts_with("3.") || each == "8.2"; });
  EXPECT_EQ(found, expected);
  ASSERT_EQ(pipeline.failures().size(), 2u);
  EXPECT_EQ(pipeline.failures()[0].chunk.text(), "3.0");
  EXPECT_EQ(pipeline.failures()[1].chunk.text(), "8.2");
  EXPECT_EQ(pipeline.failures()[1].stage, "split");
}

TEST_P(ManyTest, AConsumerThatLeavesEndsAnEndlessSplit) {
  std::atomic<std::uint64_t> made{0};
  {
    Pipeline pipeline(options());
    pipeline.source(numbers(random_lengths(3, 4))).flat_map([&](Chunk&) {
      return [&](Chunk& part) {
        ++made;
        part.add("x", 1, 1, DType::float64);
        return true;  // for ever
      };
    });
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(pipeline.next().has_value());
  }
  EXPECT_LT(made.load(), 2000u);
}

TEST_P(ManyTest, AFilterDropsChunksOfWhichNothingIsExpected) {
  for (const StageMode mode :
       {StageMode::parallel, StageMode::serial, StageMode::serial_in_order}) {
    Pipeline pipeline(options());
    std::vector<std::uint64_t> order;
    pipeline.source(numbers(random_lengths(50, 5)))
        .filter([](Chunk& c) { return c.number() % 3 == 1; }, "third", mode)
        .kernel(increment_, {updates("x")})
        .serial_in_order([&](Chunk& c) { order.push_back(c.number()); });
    std::uint64_t expected = 1;
    while (const auto chunk = pipeline.next()) {
      EXPECT_EQ(chunk->number(), expected);
      expected += 3;
    }
    EXPECT_EQ(expected, 52u);
    EXPECT_EQ(order.size(), 17u);
    EXPECT_EQ(pipeline.stats().dropped, 33u);
    EXPECT_EQ(pipeline.stats().failed, 0u);
  }
}

TEST_P(ManyTest, AChunkPassesTheStagesOfItsList) {
  Pipeline pipeline(options());
  std::vector<std::string> noted;
  const Pipeline::Source inner = numbers(random_lengths(40, 6));
  pipeline
      .source([&](Chunk& chunk) {
        if (chunk.number() % 4 == 1) chunk.stages = {{"double", "note"}};
        if (chunk.number() % 4 == 2) chunk.stages = {{"split", "increment"}};
        if (chunk.number() % 4 == 3) chunk.stages.emplace();
        return inner(chunk);
      })
      .flat_map(parts_of, {}, "split")
      .kernel(double_, {reads("x"), writes("y", like_x)})
      .kernel(increment_, {updates("x")})
      .serial_in_order([&](Chunk& c) { noted.push_back(c.id().text()); }, "note");
  std::vector<std::string> found;
  while (const auto chunk = pipeline.next()) {
    found.push_back(chunk->id().text());
    const auto number = static_cast<double>(chunk->number());
    const bool is_part = !chunk->id().parts.empty();
    EXPECT_EQ(chunk->values<double>("x")[0], number + is_part);
    ASSERT_EQ(chunk->find("y") != nullptr, chunk->number() % 4 < 2);
    if (chunk->find("y")) {
      EXPECT_EQ(chunk->values<double>("y")[0], 2 * number);
    }
  }
  std::vector<std::string> expected;
  std::vector<std::string> expected_notes;
  for (std::uint64_t n = 0; n < 40; ++n) {
    const std::string name = std::to_string(n);
    if (n % 2 == 1) expected.push_back(name);
    if (n % 4 == 1) expected_notes.push_back(name);
    for (std::uint64_t i = 0; n % 2 == 0 && i < n % 5; ++i) {
      expected.push_back(name + "." + std::to_string(i));
      if (n % 4 == 0) expected_notes.push_back(expected.back());
    }
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(noted, expected_notes);
}

TEST_P(ManyTest, AnEstimateAsksWhatChunksBecome) {
  if (GetParam() != Where::virtual_clock) GTEST_SKIP() << "its bound is known to the nanosecond";
  EngineOptions of_engine = engine_->options();
  // Stages on the host don't wait for each other's cores.
  of_engine.machine = Machine::parse("emulated:2,memory=1MiB;cpu:4");
  of_engine.machine->kernels["unit"]["emulated"][1] = 1e-5;
  Engine engine(of_engine);
  std::vector<Chunk> like;
  for (std::uint64_t n = 0; n < 40; ++n) {
    like.emplace_back(n).add("x", 100, 1, DType::float64);
    std::ranges::fill(like.back().values<double>("x"), 1.0);
  }
  const auto add_stages = [&](Pipeline& pipeline, double split, double last) {
    pipeline.source(numbers(std::vector<std::int64_t>(40, 100)))
        .kernel(increment_, {updates("x")})
        .flat_map(parts_of, {}, "split")
        .kernel(double_, {reads("x"), writes("y", like_x)})
        .serial([](Chunk&) {}, "last")
        .takes("split", split)
        .takes("last", last);
  };
  for (const auto& [split, last] : {std::pair{2e-3, 1e-3}, std::pair{1e-3, 2e-3}}) {
    Pipeline pipeline({.engine = &engine});
    add_stages(pipeline, split, last);
    const PipelineEstimate estimate = pipeline.estimate(like);
    const PipelineStats stats = pipeline.run();
    EXPECT_EQ(stats.chunks, 80u);  // 0 + 1 + 2 + 3 + 4 of each five
    EXPECT_EQ(estimate.limit, split > last ? "split" : "last");
    EXPECT_EQ(estimate.limit, stats.limit);
    EXPECT_NEAR(estimate.seconds, 80 * std::max(split, last), 1e-6);
    EXPECT_NEAR(estimate.seconds, stats.bound_seconds, 0.01 * stats.bound_seconds);
  }
  Pipeline pipeline({.engine = &engine});
  add_stages(pipeline, 0, 0);
  EXPECT_NE(pipeline.estimate(like).limit, "last");
  std::vector<Chunk> other;
  other.emplace_back(7).add("z", 1, 1, DType::float64);
  EXPECT_THROW(pipeline.estimate(other), Error);
}

/// Each part holds on to a token, as parts hold on to their memory.
TEST_P(ManyTest, AnEstimateKeepsNoMoreThanOneChunkOfEachSplit) {
  const auto token = std::make_shared<int>();
  long most = 0;
  Pipeline pipeline(options());
  pipeline.source(numbers(std::vector<std::int64_t>(3, 2)))
      .flat_map([&](Chunk&) {
        return [&, made = 0](Chunk& part) mutable {
          part.add("x", 2, 1, DType::float64);
          part.context = token;
          most = std::max(most, token.use_count());
          return made++ < 50;
        };
      })
      .serial([](Chunk&) {}, "last")
      .takes("last", 1.0);
  std::vector<Chunk> like;
  for (std::uint64_t n = 0; n < 3; ++n) like.emplace_back(n).add("x", 2, 1, DType::float64);
  const PipelineEstimate estimate = pipeline.estimate(like);
  EXPECT_EQ(estimate.limit, "last");
  EXPECT_DOUBLE_EQ(estimate.seconds, 3 * 50);
  EXPECT_LE(most, 2);
}

TEST_P(ManyTest, AnEstimateRefusesASplitWithoutEnd) {
  Pipeline pipeline(options());
  pipeline.source(numbers({2}))
      .flat_map([](Chunk&) { return [](Chunk&) { return true; }; }, {}, "endless");
  std::vector<Chunk> like;
  like.emplace_back(0).add("x", 2, 1, DType::float64);
  try {
    pipeline.estimate(like);
    FAIL() << "an estimate of a split without end";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unavailable);
    EXPECT_NE(std::string(error.what()).find("'endless'"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("more than"), std::string::npos) << error.what();
  }
}

TEST_P(ManyTest, AStageThatThereIsntIsNamed) {
  Pipeline pipeline(options());
  pipeline
      .source([](Chunk& chunk) {
        chunk.stages = {{"increment", "triple"}};
        return true;
      })
      .kernel(increment_, {updates("x")});
  try {
    pipeline.run();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "stage 'source' failed at chunk 0: chunk 0 is to pass a stage 'triple'; the "
                 "pipeline has 'increment'");
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, ManyTest, all_engines(), engine_name);

}  // namespace
}  // namespace quadriga
