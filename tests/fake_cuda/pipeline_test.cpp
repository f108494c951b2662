// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/pipeline_test.cpp: chunks of streams lie in pinned memory, which ends with a run;
// libraries are called on their streams.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <quadriga/per_stream.h>
#include <quadriga/pipeline.h>

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "fake_cuda/streams.h"

namespace quadriga {
namespace {

constexpr std::int64_t rows = 32 * 1024;

bool is_pinned(const void* memory) {
  cudaPointerAttributes found{};
  EXPECT_EQ(cudaPointerGetAttributes(&found, memory), cudaSuccess);
  return found.type == cudaMemoryTypeHost;
}

class PinnedChunks : public testing::Test {
 protected:
  PinnedChunks() {
    add_.name = "add one";
    add_.access = {Access::read, Access::write};
    add_.cuda = [](const Arguments& call) {
      const auto* const x = call.operands[0].as<double>();
      auto* const y = call.operands[1].as<double>();
      static_cast<cudaStream_t>(call.stream)->push([x, y] {
        for (std::int64_t i = 0; i < rows; ++i) y[i] = x[i] + 1;
      });
    };
  }
  static Pipeline::Source source(std::uint64_t count) {
    return [count](Chunk& chunk) {
      if (chunk.number() == count) return false;
      const View x = chunk.add("x", rows, 1, DType::float64);
      EXPECT_TRUE(is_pinned(x.data));
      std::fill_n(x.as<double>(), rows, static_cast<double>(chunk.number()));
      return true;
    };
  }
  static FieldShape like_x(const Chunk&) { return {rows, 1, DType::float64}; }

  Codelet add_;
};

TEST_F(PinnedChunks, ReadersFillThemInPlaceAndKernelsWriteThem) {
  std::optional<Chunk> kept;
  std::set<const void*> addresses;
  {
    Pipeline pipeline({.host_memory = "4MiB", .devices = "cuda:1,memory=16MiB"});
    pipeline.source(source(40)).kernel(add_, {reads("x"), writes("y", like_x)});
    while (auto chunk = pipeline.next()) {
      const View y = (*chunk)["y"];
      EXPECT_TRUE(is_pinned(y.data));
      EXPECT_EQ(y.as<double>()[rows - 1], static_cast<double>(chunk->number()) + 1);
      addresses.insert(y.data);
      if (chunk->number() == 39) kept = std::move(chunk);
    }
    ASSERT_TRUE(kept);
    EXPECT_LE(addresses.size(), 20u) << "memory is used again";
  }
  EXPECT_FALSE(is_pinned((*kept)["y"].data)) << "the engine is gone";
  EXPECT_EQ((*kept)["y"].as<double>()[0], 40.0);
}

TEST_F(PinnedChunks, MemoryThatIsNotPinnedIsFilledAsWell) {
  Pipeline pipeline({.host_memory = "1MiB", .devices = "cuda:1,memory=16MiB"});
  std::vector<Chunk> held;
  pipeline.source([&](Chunk& chunk) {
    if (chunk.number() == 12) return false;
    const View x = chunk.add("x", rows, 1, DType::float64);
    std::fill_n(x.as<double>(), rows, 5.0);
    return true;
  });
  pipeline.kernel(add_, {reads("x"), writes("y", like_x)});
  while (auto chunk = pipeline.next()) held.push_back(std::move(*chunk));
  ASSERT_EQ(held.size(), 12u);
  int pinned = 0;
  for (const Chunk& chunk : held) {
    EXPECT_EQ(chunk["y"].as<double>()[7], 6.0);
    pinned += is_pinned(chunk["y"].data);
  }
  EXPECT_LT(pinned, 5) << "as many as host_memory has room for";
}

/// A plan, and the stream that it was made for.
struct Plan {
  void* stream;
  double added;
};

TEST_F(PinnedChunks, ALibraryIsCalledOnItsStreamWithThePlanOfThat) {
  std::mutex mutex;
  std::map<void*, int> plans;  // by stream
  bool is_mixed = false;
  const LibraryCall<Plan> add_more{
      .name = "add more", .cuda = [&](Plan& plan, const Arguments& call) {
        auto* const y = call.operands[0].as<double>();
        static_cast<cudaStream_t>(call.stream)->push([y, more = plan.added] {
          for (std::int64_t i = 0; i < rows; ++i) y[i] += more;
        });
        const std::lock_guard lock(mutex);
        is_mixed = is_mixed || plan.stream != call.stream;
      }};
  {
    Pipeline pipeline({.devices = "cuda:2,memory=16MiB"});
    pipeline.source(source(40))
        .kernel(add_, {reads("x"), writes("y", like_x)})
        .library(add_more, per_stream([&](const Arguments& call) {
                   const std::lock_guard lock(mutex);
                   ++plans[call.stream];
                   return Plan{call.stream, 10};
                 }));
    std::uint64_t seen = 0;
    for (; const auto chunk = pipeline.next(); ++seen)
      for (const double y : chunk->values<double>("y"))
        ASSERT_EQ(y, static_cast<double>(chunk->number()) + 11);
    EXPECT_EQ(seen, 40u);
  }
  EXPECT_FALSE(is_mixed);
  EXPECT_GE(plans.size(), 2u) << "one for each device at least";
  EXPECT_FALSE(plans.contains(nullptr));
  for (const auto& [stream, made] : plans) EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace quadriga
