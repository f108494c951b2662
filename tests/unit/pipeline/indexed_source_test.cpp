// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/indexed_source_test.cpp: sources that tell sizes before content.
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>

#include "unit/pipeline/flow_fixture.h"

namespace quadriga {
namespace {

using Numbers = std::vector<std::uint64_t>;

class IndexedSourceTest : public FlowTest {
 protected:
  /// Chunks of these lengths, which notes in which order they are read.
  IndexedSource indexed(std::vector<std::int64_t> lengths) {
    IndexedSource made{numbers(lengths), {lengths.begin(), lengths.end()}};
    made.read = [this, read = made.read](Chunk& chunk) {
      read_.push_back(chunk.number());  // by one thread at a time
      return read(chunk);
    };
    return made;
  }
  /// The numbers that come to the end of a pipeline.
  Pipeline::Body collect() {
    return [this](Chunk& chunk) { arrived_.insert(chunk.number()); };
  }
  static std::set<std::uint64_t> up_to(std::uint64_t end) {
    std::set<std::uint64_t> found;
    for (std::uint64_t i = 0; i < end; ++i) found.insert(i);
    return found;
  }
  static Numbers in_order(std::uint64_t count) {
    Numbers found(count);
    std::iota(found.begin(), found.end(), std::uint64_t{0});
    return found;
  }
  PipelineOptions largest_first() {
    PipelineOptions made = options();
    made.order = Order::largest;
    made.look_ahead = 2;
    return made;
  }
  static std::string failure_of(Pipeline& pipeline) {
    try {
      pipeline.run();
    } catch (const Error& error) {
      std::string text = error.what();
      try {
        std::rethrow_if_nested(error);
      } catch (const std::exception& nested) {
        text += std::string("; ") + nested.what();
      }
      return text;
    }
    return "none";
  }

  Numbers read_;
  std::set<std::uint64_t> arrived_;
};

INSTANTIATE_TEST_SUITE_P(All, IndexedSourceTest, all_engines(), engine_name);

TEST_P(IndexedSourceTest, EachChunkPassesOnce) {
  const std::vector<std::int64_t> lengths = random_lengths(60, 5);
  Pipeline pipeline(options());
  pipeline.source(indexed(lengths))
      .kernel(double_, {reads("x"), writes("y", like_x)})
      .serial(collect());
  std::size_t count = 0;
  while (const auto chunk = pipeline.next(false)) {
    ++count;
    const auto values = chunk->values<double>("y");
    ASSERT_EQ(static_cast<std::int64_t>(values.size()), lengths[chunk->number()]);
    if (GetParam() == Where::virtual_clock) continue;
    EXPECT_EQ(values.front(), 2.0 * static_cast<double>(chunk->number()));
  }
  EXPECT_EQ(count, lengths.size());
  EXPECT_EQ(arrived_, up_to(lengths.size()));
}

TEST_P(IndexedSourceTest, IsReadAsTheOrderTakesChunks) {
  Pipeline pipeline(largest_first());
  pipeline.source(indexed({30, 10, 50, 20, 40})).kernel(double_, {reads("x"), writes("y", like_x)});
  pipeline.run();
  EXPECT_EQ(read_, (Numbers{2, 4, 0, 3, 1}));
}

TEST_P(IndexedSourceTest, IsReadByStagesOfTheHostAlone) {
  Pipeline pipeline(options());
  pipeline.source(indexed({30, 10, 50, 20, 40})).serial(collect());
  pipeline.run();
  EXPECT_EQ(read_, (Numbers{2, 4, 0, 3, 1}));
  EXPECT_EQ(arrived_, up_to(5));
}

TEST_P(IndexedSourceTest, IsReadInOrderWhereResultsComeInOrder) {
  Pipeline pipeline(largest_first());
  pipeline.source(indexed({30, 10, 50, 20, 40})).kernel(double_, {reads("x"), writes("y", like_x)});
  Numbers results;
  while (const auto chunk = pipeline.next()) results.push_back(chunk->number());
  EXPECT_EQ(read_, in_order(5));
  EXPECT_EQ(results, in_order(5));
}

TEST_P(IndexedSourceTest, IsReadInOrderWhereAStageTakesChunksInOrder) {
  Pipeline pipeline(largest_first());
  Numbers seen;
  pipeline.source(indexed({30, 10, 50, 20, 40}))
      .kernel(double_, {reads("x"), writes("y", like_x)})
      .serial_in_order([&](const Chunk& chunk) { seen.push_back(chunk.number()); });
  pipeline.set_order(Order::smallest);
  pipeline.run();
  EXPECT_EQ(read_, in_order(5));
  EXPECT_EQ(seen, in_order(5));
}

TEST_P(IndexedSourceTest, SizesThatAreWrongCostTimeAndNothingElse) {
  std::vector<std::int64_t> lengths = random_lengths(40, 9);
  IndexedSource source = indexed(lengths);
  std::ranges::sort(source.sizes, std::greater<>());  // of others
  PipelineOptions little = options();
  little.host_memory = "64KiB";  // two of the largest, with what kernels write
  little.look_ahead = 4;
  Pipeline pipeline(little);
  pipeline.source(std::move(source))
      .kernel(double_, {reads("x"), writes("y", like_x)})
      .serial(collect());
  const PipelineStats stats = pipeline.run();
  EXPECT_EQ(arrived_, up_to(lengths.size()));
  EXPECT_EQ(stats.chunks, lengths.size());
  EXPECT_LE(stats.most_host_bytes, std::size_t{64} << 10);
}

TEST_P(IndexedSourceTest, AChunkThatIsntThereEndsTheRunBehindThoseBefore) {
  IndexedSource source = indexed({1, 2, 3});
  source.sizes = {10, 20, 30, 40, 5};
  Pipeline pipeline(largest_first());
  pipeline.source(std::move(source)).serial(collect());
  const std::string told = failure_of(pipeline);
  EXPECT_NE(told.find("'source' failed at chunk 3"), std::string::npos) << told;
  EXPECT_NE(told.find("sizes tell of chunk 3, and the source has none"), std::string::npos) << told;
  EXPECT_EQ(read_, (Numbers{3, 2, 1, 0}));
  EXPECT_EQ(arrived_, up_to(3));
}

TEST_P(IndexedSourceTest, ChunksBeforeOneThatFailsArrive) {
  const std::vector<std::int64_t> lengths{10, 20, 30, 40, 50, 60};
  Pipeline pipeline(largest_first());
  pipeline.source(indexed(lengths))
      .parallel([](Chunk& chunk) {
        if (chunk.number() == 4) throw std::runtime_error("bad chunk");
      })
      .serial(collect());
  const std::string told = failure_of(pipeline);
  EXPECT_NE(told.find("failed at chunk 4"), std::string::npos) << told;
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(arrived_.contains(i)) << i;
}

TEST_P(IndexedSourceTest, IsEstimatedByItsSmallestAndLargestChunks) {
  const std::vector<std::int64_t> lengths = random_lengths(30, 4);
  Pipeline pipeline(options());
  pipeline.source(indexed(lengths))
      .kernel(double_, {reads("x"), writes("y", like_x)})
      .serial([](const Chunk&) {}, "write")
      .takes("source", 1e-7)
      .takes("write", [](const Chunk& c) { return 1e-9 * static_cast<double>(c["x"].rows); });
  std::vector<Chunk> all;
  const Pipeline::Source read = numbers(lengths);
  for (std::uint64_t i = 0; i < lengths.size(); ++i) read(all.emplace_back(i));
  const double kernel[] = {0, 1e-5, 0};
  const PipelineEstimate expected = pipeline.estimate(all, kernel);
  const PipelineEstimate found = pipeline.estimate({}, kernel);
  EXPECT_EQ(read_.size(), 2u);
  EXPECT_NEAR(found.seconds, expected.seconds, 1e-9 * expected.seconds);
  EXPECT_EQ(found.limit, expected.limit);
  EXPECT_NEAR(found.one_device_more, expected.one_device_more, 1e-9 * expected.seconds);
  EXPECT_GT(found.seconds, 0);
}

TEST_P(IndexedSourceTest, OfAFlatMapIsntEstimated) {
  Pipeline pipeline(options());
  pipeline.source(indexed({1, 2}))
      .flat_map([](Chunk&) { return Pipeline::Source([](Chunk&) { return false; }); }, {}, "cut");
  try {
    pipeline.estimate();
    ADD_FAILURE() << "sizes told what a flat_map makes";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unavailable);
    EXPECT_NE(std::string(error.what()).find("flat_map 'cut'"), std::string::npos) << error.what();
  }
}

TEST_P(IndexedSourceTest, IsntEstimatedWhileARunReadsIt) {
  Pipeline pipeline(options());
  pipeline.source(indexed({1, 2, 3})).serial([&](const Chunk&) {
    EXPECT_THROW(pipeline.estimate(), Error);
  });
  EXPECT_EQ(pipeline.run().chunks, 3u);
  EXPECT_EQ(read_.size(), 3u);
}

TEST_P(IndexedSourceTest, AFewChunksDoAsWellAsAll) {
  if (GetParam() != Where::virtual_clock) GTEST_SKIP() << "times are those of the virtual clock";
  const auto seconds = [this](std::uint64_t seed, int look_ahead, bool has_sizes) {
    const std::vector<std::int64_t> lengths = random_lengths(40, seed);
    PipelineOptions given = options();
    given.look_ahead = look_ahead;
    Pipeline pipeline(given);
    if (has_sizes)
      pipeline.source(indexed(lengths));
    else
      pipeline.source(numbers(lengths));
    return pipeline.kernel(double_, {reads("x"), writes("y", like_x)}).run().seconds;
  };
  double few = 0;
  double few_indexed = 0;
  double all = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    few += seconds(seed, 4, false);
    few_indexed += seconds(seed, 4, true);
    all += seconds(seed, 40, false);
  }
  EXPECT_LT(few_indexed, few);
  EXPECT_LT(few_indexed - all, (few - all) / 4);
  RecordProperty("few", std::to_string(few / all));
  RecordProperty("few_indexed", std::to_string(few_indexed / all));
}

TEST_P(IndexedSourceTest, OfNoChunksEndsAtOnce) {
  Pipeline pipeline(options());
  pipeline.source(indexed({})).kernel(double_, {reads("x"), writes("y", like_x)});
  EXPECT_EQ(pipeline.run().chunks, 0u);
  EXPECT_TRUE(read_.empty());
}

TEST_P(IndexedSourceTest, CanBeStopped) {
  Pipeline pipeline(options());
  pipeline.source(indexed(random_lengths(500, 3))).serial([&](const Chunk&) { pipeline.stop(); });
  EXPECT_LT(pipeline.run().chunks, 500u);
}

TEST_P(IndexedSourceTest, WaitsForRoom) {
  PipelineOptions dropping = options();
  dropping.on_full = OnFull::drop;
  Pipeline pipeline(dropping);
  pipeline.source(indexed({1, 2})).takes("source", 1.0);
  EXPECT_THROW(pipeline.run(), Error);
  Pipeline wrong(options());
  EXPECT_THROW(wrong.source({numbers({1}), {-1.0}}), Error);
}

}  // namespace
}  // namespace quadriga
