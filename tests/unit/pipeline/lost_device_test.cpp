// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/lost_device_test.cpp: chunks of a device that is lost run again from their
// input, on another device or on the host.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <quadriga/pipeline.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "base/log.h"
#include "device/factory.h"
#include "engine/engine_access.h"
#include "sanitized.h"

namespace quadriga {
namespace {

constexpr std::uint64_t chunks = 30;
constexpr std::int64_t length = 500;

class LostChunks : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    set_log_sink([](LogLevel, std::string_view) {});
    double_.name = "double";
    double_.access = {Access::read, Access::write};
    double_.cpu = [](const Arguments& a) {
      for (std::int64_t i = 0; i < a.operands[0].rows; ++i)
        a.operands[1].as<double>()[i] = 2 * a.operands[0].as<double>()[i];
    };
    double_.cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
    triple_ = double_;
    triple_.name = "triple";
    triple_.access = {Access::update};
    triple_.cpu = [](const Arguments& a) {
      for (std::int64_t i = 0; i < a.operands[0].rows; ++i) a.operands[0].as<double>()[i] *= 3;
    };
  }
  void TearDown() override { set_log_sink({}); }

  std::unique_ptr<Engine> engine_losing(std::vector<FaultPlan::Loss> losses,
                                        const char* devices = "emulated:2,memory=1MiB") {
    WrappedOptions options;
    options.machine = Machine::parse(devices);
    for (const char* const rates : {"emulated", "cpu", ""})
      options.machine->kernels["unit"][rates][1] = 1e-4;
    options.virtual_clock = GetParam();
    options.wrap_backend = [losses](std::unique_ptr<Backend> backend) {
      return make_faulty_backend(std::move(backend), {.losses = losses});
    };
    return EngineAccess::make_unique(options);
  }
  /// From one moment of the loss to the next: engines with threads take longer to make.
  static std::uint64_t step() { return GetParam() ? 1 : is_thread_sanitized ? 9 : 3; }
  static bool fill(Chunk& chunk) {
    if (chunk.number() == chunks) return false;
    const View view = chunk.add("x", length, 1, DType::float64);
    std::fill_n(view.as<double>(), view.rows, static_cast<double>(chunk.number()));
    return true;
  }
  static FieldShape like_x(const Chunk& chunk) { return {chunk["x"].rows, 1, DType::float64}; }
  static bool is_all(const View& view, double value) {
    return std::all_of(view.as<double>(), view.as<double>() + view.rows,
                       [value](double each) { return each == value; });
  }

  /// Reads x, writes y by way of a temporary: the input stays what it is.
  void expect_all(Engine& engine) {
    Pipeline pipeline({.engine = &engine});
    pipeline.source(&LostChunks::fill)
        .kernel(double_, {reads("x"), temporary("t", like_x)})
        .kernel(double_, {reads("t"), writes("y", like_x)});
    std::uint64_t seen = 0;
    while (const auto chunk = pipeline.next()) {
      EXPECT_EQ(chunk->number(), seen++);
      EXPECT_TRUE(is_all((*chunk)["y"], 4.0 * static_cast<double>(chunk->number())));
    }
    EXPECT_EQ(seen, chunks);
  }

  Codelet double_;
  Codelet triple_;
};

TEST_P(LostChunks, RunAgainOnTheDeviceThatIsLeftWheneverTheLossComes) {
  for (std::uint64_t operations = 1; operations < 40; operations += step()) {
    SCOPED_TRACE(operations);
    expect_all(*engine_losing({{0, operations}}));
  }
}

TEST_P(LostChunks, RunOnTheHostIfAllDevicesAreLost) {
  for (std::uint64_t operations = 1; operations < 30; operations += 3 * step()) {
    SCOPED_TRACE(operations);
    expect_all(*engine_losing({{0, operations}, {1, operations / 2 + 1}}));
  }
}

/// What has begun to go home has overwritten its input: such a chunk fails, and no other.
TEST_P(LostChunks, FailWhereTheirInputIsOverwritten) {
  for (std::uint64_t operations = 1; operations < 40; operations += step()) {
    SCOPED_TRACE(operations);
    const auto engine = engine_losing({{0, operations}});
    Pipeline pipeline({.engine = engine.get(), .on_error = OnError::skip});
    pipeline.source(&LostChunks::fill).kernel(triple_, {updates("x")});
    std::set<std::uint64_t> seen;
    while (const auto chunk = pipeline.next()) {
      EXPECT_TRUE(is_all((*chunk)["x"], 3.0 * static_cast<double>(chunk->number())));
      seen.insert(chunk->number());
    }
    const std::vector<ChunkFailure> failures = pipeline.failures();
    EXPECT_EQ(seen.size() + failures.size(), chunks);
    EXPECT_LE(failures.size(), 3u);  // those on the device
    for (const ChunkFailure& each : failures) EXPECT_FALSE(seen.contains(each.chunk.number));
  }
}

TEST_P(LostChunks, AreCountedAndNoOtherGoesThere) {
  const auto engine = engine_losing({{0, 9}});
  Pipeline pipeline({.engine = engine.get()});
  pipeline.source(&LostChunks::fill).kernel(double_, {reads("x"), writes("y", like_x)});
  const PipelineStats stats = pipeline.run();
  EXPECT_EQ(stats.chunks, chunks);
  EXPECT_LE(stats.repeated, 3u);
  EXPECT_GE(stats.by_device[1], chunks - 8);
}

/// Parts of a result on a lost device may have come home, with chunks in them that have lost the
/// rest of their results: whatever is told as the result has each chunk once.
TEST_P(LostChunks, AreInTheResultOfAllChunksOnce) {
  Codelet add;
  add.name = "add";
  add.access = {Access::read, Access::update};
  add.cpu = [](const Arguments& a) {
    for (std::int64_t i = 0; i < a.operands[0].rows; ++i)
      a.operands[1].as<double>()[i] += a.operands[0].as<double>()[i];
  };
  add.cost = double_.cost;
  const auto zero = [](const View& sums) { std::fill_n(sums.as<double>(), sums.rows, 0.0); };
  const auto join = [](const View& sums, const View& others) {
    for (std::int64_t i = 0; i < sums.rows; ++i) sums.as<double>()[i] += others.as<double>()[i];
  };
  int finished = 0;
  for (const int memory : {14, 24, 33})
    for (std::uint64_t operations = 1; operations < 90; operations += step()) {
      SCOPED_TRACE(fmt::format("{} KiB, {} operations", memory, operations));
      const auto engine =
          engine_losing({{0, operations}}, fmt::format("emulated:2,memory={}KiB", memory).c_str());
      Pipeline pipeline({.engine = engine.get()});
      pipeline.source(&LostChunks::fill)
          .kernel(double_, {reads("x"), writes("y", like_x)})
          .kernel(add, {reads("y"), reduces("sums", like_x, {zero, join})});
      try {
        pipeline.run();
      } catch (const Error&) {  // with a part, or with a chunk that had changed one
        continue;
      }
      ++finished;
      EXPECT_TRUE(is_all(pipeline.reduced("sums"), static_cast<double>(chunks * (chunks - 1))))
          << pipeline.reduced("sums").as<double>()[0];
    }
  EXPECT_GT(finished, 0);
}

/// The larger device is lost, and what fits it alone with it.
TEST_P(LostChunks, FailIfTheyFitNoDeviceThatIsLeft) {
  const auto engine = engine_losing({{0, 6}}, "emulated:1,memory=1MiB;emulated:1,memory=16KiB");
  Pipeline pipeline({.engine = engine.get(), .on_error = OnError::skip});
  pipeline
      .source([](Chunk& chunk) {
        if (chunk.number() == chunks) return false;
        const std::int64_t rows = chunk.number() % 2 == 0 ? length : 20 * length;
        const View view = chunk.add("x", rows, 1, DType::float64);
        std::fill_n(view.as<double>(), view.rows, 1.0);
        return true;
      })
      .kernel(double_, {reads("x"), writes("y", like_x)});
  const PipelineStats stats = pipeline.run();
  EXPECT_GE(stats.chunks, chunks / 2);
  EXPECT_EQ(stats.chunks + stats.failed, chunks);
  for (const ChunkFailure& each : pipeline.failures()) EXPECT_EQ(each.chunk.number % 2, 1u);
}

INSTANTIATE_TEST_SUITE_P(, LostChunks, testing::Bool(), [](const auto& given) {
  return std::string(given.param ? "VirtualClock" : "RealClock");
});

}  // namespace
}  // namespace quadriga
