// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/lent_memory_test.cpp: sources that fill the memory that they have lent.
#include "pipeline/lent_memory.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "unit/pipeline/flow_fixture.h"

namespace quadriga {
namespace {

View view_of(std::vector<double>& values) {
  const auto rows = static_cast<std::int64_t>(values.size());
  return {values.data(), rows, 1, rows, DType::float64};
}

class LentMemoryTest : public FlowTest {
 protected:
  /// Fills one buffer for each of nine chunks with their number.
  Pipeline::Source one_buffer(std::vector<double>& buffer) {
    return [&buffer](Chunk& chunk) {
      if (chunk.number() == 9) return false;
      std::ranges::fill(buffer, static_cast<double>(chunk.number()));
      chunk.lend("x", view_of(buffer));
      return true;
    };
  }
};

TEST_P(LentMemoryTest, ABufferThatIsFilledAgainEndsTheRun) {
  for (const std::size_t length : {1u, 100u, 5000u}) {
    std::vector<double> buffer(length);
    std::promise<void> filled_again;  // the first chunk isn't read before
    Pipeline pipeline(options());
    pipeline
        .source([&, fill = one_buffer(buffer)](Chunk& chunk) {
          const bool is_chunk = fill(chunk);
          if (chunk.number() == 1) filled_again.set_value();
          return is_chunk;
        })
        .parallel([&, done = filled_again.get_future().share()](Chunk& chunk) {
          if (GetParam() != Where::virtual_clock && chunk.number() == 0) {
            EXPECT_EQ(done.wait_for(std::chrono::minutes(1)), std::future_status::ready);
          }
        })
        .kernel(double_, {reads("x"), writes("y", like_x)});
    std::vector<Chunk> kept;  // while they are in progress or results, the memory is theirs
    try {
      while (auto chunk = pipeline.next()) kept.push_back(std::move(*chunk));
      FAIL() << "not noticed";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("lies in memory of field 'x' of chunk"), std::string::npos) << text;
      EXPECT_NE(text.find("Lending::reused"), std::string::npos) << text;
    }
  }
}

/// Nine parts of each chunk, in one buffer.
Pipeline::Split parts_in(std::vector<double>& buffer) {
  return [&buffer](Chunk&) {
    return [&buffer, made = 0](Chunk& part) mutable {
      if (made == 9) return false;
      std::ranges::fill(buffer, static_cast<double>(made++));
      part.lend("x", view_of(buffer));
      return true;
    };
  };
}

TEST_P(LentMemoryTest, PartsInABufferThatIsFilledAgainEndTheRun) {
  for (const std::size_t length : {1u, 100u, 5000u}) {
    std::vector<double> buffer(length);
    Pipeline pipeline(options());
    pipeline.source(numbers({1, 2})).flat_map(parts_in(buffer));
    std::vector<Chunk> kept;  // results, whose memory is theirs
    try {
      while (auto chunk = pipeline.next()) kept.push_back(std::move(*chunk));
      FAIL() << "not noticed";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("of chunk 0.1 lies in memory of field 'x' of chunk 0.0"),
                std::string::npos)
          << text;
    }
  }
}

TEST_P(LentMemoryTest, ReusedMemoryOfPartsIsCopied) {
  std::vector<double> buffer(100);
  Pipeline pipeline(options());
  pipeline.source(numbers({1, 2}))
      .flat_map(parts_in(buffer), {}, "parts", Lending::reused)
      .kernel(double_, {reads("x"), writes("y", like_x)});
  std::vector<double> found;
  while (const auto chunk = pipeline.next()) {
    found.push_back(chunk->values<double>("x")[99]);
    EXPECT_EQ(chunk->values<double>("y")[99], 2 * found.back());
  }
  EXPECT_EQ(found, (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_P(LentMemoryTest, PartsMayBeWindowsOfTheirChunkThatOverlapAndComeAgain) {
  Pipeline pipeline(options());
  pipeline.source(numbers({100, 100, 100, 100}))
      .flat_map([](Chunk& chunk) {
        return [x = chunk["x"], made = 0](Chunk& part) mutable {
          if (made == 30) return false;
          View window = x;
          window.data = x.as<double>() + 10 * (made++ % 6);
          window.rows = window.ld = 40;
          part.lend("x", window);
          return true;
        };
      })
      .kernel(double_, {reads("x"), writes("y", like_x)});
  std::size_t found = 0;
  while (const auto chunk = pipeline.next()) {
    ++found;
    EXPECT_EQ(chunk->values<double>("y")[39], 2.0 * static_cast<double>(chunk->number()));
  }
  EXPECT_EQ(found, 120u);
}

TEST_P(LentMemoryTest, ReusedMemoryIsCopied) {
  std::vector<double> buffer(100);
  Pipeline pipeline(options());
  pipeline.source(one_buffer(buffer), Lending::reused)
      .kernel(double_, {reads("x"), writes("y", like_x)});
  std::vector<double> found;
  while (const auto chunk = pipeline.next()) {
    found.push_back(chunk->values<double>("x")[99]);
    EXPECT_EQ(chunk->values<double>("y")[99], 2 * found.back());
  }
  EXPECT_EQ(found, (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_P(LentMemoryTest, CopiesHaveNoGapsBetweenColumns) {
  std::vector<double> matrix = {1, 2, 0, 3, 4, 0};
  Pipeline pipeline(options());
  pipeline.source(
      [&](Chunk& chunk) {
        chunk.lend("x", {matrix.data(), 2, 2, 3, DType::float64});
        return chunk.number() < 1;
      },
      Lending::reused);
  const auto chunk = pipeline.next();
  ASSERT_TRUE(chunk);
  const std::span<double> x = chunk->values<double>("x");
  EXPECT_EQ(std::vector<double>(x.begin(), x.end()), (std::vector<double>{1, 2, 3, 4}));
}

TEST_P(LentMemoryTest, ATableThatAllChunksHaveIsNoError) {
  std::vector<double> table(3000, 7);
  Pipeline pipeline(options());
  pipeline
      .source([&](Chunk& chunk) {
        chunk.lend("x", view_of(table));
        return chunk.number() < 50;
      })
      .kernel(double_, {reads("x"), writes("y", like_x)});
  EXPECT_EQ(pipeline.run().chunks, 50u);
}

TEST_P(LentMemoryTest, WhatIsUnchangingIsNotCompared) {
  std::vector<double> buffer(10);
  Pipeline pipeline(options());
  pipeline.source(one_buffer(buffer), Lending::unchanging);
  EXPECT_EQ(pipeline.run().chunks, 9u);
}

/// As pools of buffers are written: the keeper gives a buffer back, and the source waits for it.
TEST_P(LentMemoryTest, AKeeperTellsThatABufferIsFree) {
  if (GetParam() == Where::virtual_clock) GTEST_SKIP() << "one thread can't wait for itself";
  std::vector<double> buffer(100);
  std::mutex mutex;
  std::condition_variable changed;
  bool is_free = true;
  Pipeline pipeline(options());
  pipeline
      .source([&](Chunk& chunk) {
        if (chunk.number() == 50) return false;
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return is_free; });
        is_free = false;
        std::ranges::fill(buffer, static_cast<double>(chunk.number()));
        chunk.lend("x", view_of(buffer), std::shared_ptr<void>(&buffer, [&](void*) {
                     const std::lock_guard guard(mutex);
                     is_free = true;
                     changed.notify_one();
                   }));
        return true;
      })
      .kernel(double_, {reads("x"), writes("y", like_x)});
  std::uint64_t seen = 0;
  while (const auto chunk = pipeline.next())
    EXPECT_EQ(chunk->values<double>("y")[0], 2.0 * static_cast<double>(seen++));
  EXPECT_EQ(seen, 50u);
}

INSTANTIATE_TEST_SUITE_P(Engines, LentMemoryTest, all_engines(), engine_name);

TEST(LentMemory, WhatKernelsChangeIsNotCompared) {
  std::vector<double> buffer(10);
  LentMemory lent(Lending::fresh, {"x"});
  Chunk first(0);
  Chunk second(1);
  for (Chunk* const chunk : {&first, &second}) {
    lent.asked();
    buffer[3] += 1;
    chunk->lend("x", view_of(buffer));
    lent.filled(*chunk);
  }
}

TEST(LentMemory, MemoryOfAChunkThatHasEndedIsFree) {
  std::vector<double> buffer(10);
  LentMemory lent(Lending::fresh, {});
  for (std::uint64_t number = 0; number < 5; ++number) {
    Chunk chunk(number);
    lent.asked();
    buffer[0] = static_cast<double>(number);
    chunk.lend("x", view_of(buffer));
    lent.filled(chunk);
  }
}

/// The source waits for that within the call, as one with a ring of buffers does.
TEST(LentMemory, MemoryMayGetFreeWhileTheSourceWorks) {
  std::vector<double> buffer(10);
  LentMemory lent(Lending::fresh, {});
  Chunk second(1);
  {
    Chunk first(0);
    first.lend("x", view_of(buffer));
    lent.filled(first);
    lent.asked();
  }
  buffer[0] = 1;
  second.lend("x", view_of(buffer));
  EXPECT_NO_THROW(lent.filled(second));
  Chunk third(2);
  lent.asked();
  buffer[0] = 2;
  third.lend("x", view_of(buffer));
  EXPECT_THROW(lent.filled(third), Error) << "the second one still has it";
}

TEST(LentMemory, AnOwnerIsHeldAlsoIfItsPointerIsNull) {
  std::vector<double> buffer(10);
  const auto owner = std::make_shared<int>(0);
  LentMemory lent(Lending::fresh, {});
  bool is_held = true;
  {
    Chunk by_deleter(0);
    by_deleter.lend("x", view_of(buffer),
                    std::shared_ptr<void>(nullptr, [&](void*) { is_held = false; }));
    lent.filled(by_deleter);
    EXPECT_TRUE(is_held);
    Chunk by_alias(1);
    by_alias.lend("x", view_of(buffer), std::shared_ptr<void>(owner, nullptr));
    lent.filled(by_alias);
    EXPECT_EQ(owner.use_count(), 2);
  }
  EXPECT_FALSE(is_held);
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(LentMemory, BodiesFindTheKeeperThatTheSourceGave) {
  std::vector<double> buffer(10);
  const auto keeper = std::make_shared<int>(42);
  LentMemory lent(Lending::fresh, {});
  Chunk chunk(0);
  chunk.lend("x", view_of(buffer), keeper);
  lent.filled(chunk);
  EXPECT_EQ(chunk.fields()[0].keeper.get(), keeper.get());
}

TEST(LentMemory, AShorterPartIsComparedAsFarAsItGoes) {
  std::vector<double> buffer(5000);
  LentMemory lent(Lending::fresh, {});
  Chunk first(0);
  first.lend("x", view_of(buffer));
  lent.filled(first);
  Chunk second(1);
  lent.asked();
  buffer[4999] = 1;
  second.lend("x", {buffer.data(), 100, 1, 100, DType::float64});
  EXPECT_NO_THROW(lent.filled(second));
  Chunk third(2);
  lent.asked();
  buffer[0] = 1;
  third.lend("x", {buffer.data(), 50, 1, 50, DType::float64});
  EXPECT_THROW(lent.filled(third), Error);
}

}  // namespace
}  // namespace quadriga
