// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/nested_test.cpp: bodies that run a pipeline of their own never wait for ever.
#include <gtest/gtest.h>
#include <quadriga/pipeline.h>

#include <string>
#include <thread>

#include "pipeline/nested.h"
#include "unit/pipeline/flow_fixture.h"

namespace quadriga {
namespace {

constexpr const char* own_engine = "expected an engine of its own";

class NestedTest : public FlowTest {
 protected:
  /// The sum over four chunks of a pipeline on such an engine, whose stage doubles their element.
  double inner_sum(Engine& engine, bool by_kernel) {
    PipelineOptions inner;
    inner.engine = &engine;
    Pipeline pipeline(inner);
    pipeline.source(numbers({1, 1, 1, 1}));
    if (by_kernel)
      pipeline.kernel(double_, {reads("x"), writes("y", like_x)});
    else
      pipeline.parallel([](Chunk& c) { c.add("y", 1, 1, DType::float64); });
    double sum = 0;
    while (const auto chunk = pipeline.next()) sum += chunk->values<double>("x")[0];
    return sum;
  }
  /// The same, of a pipeline that drives on the calling thread.
  int inner_run(Engine& engine) {
    PipelineOptions inner;
    inner.engine = &engine;
    Pipeline pipeline(inner);
    pipeline.source(numbers({1, 1, 1, 1})).parallel([](Chunk&) {});
    return static_cast<int>(pipeline.run().chunks);
  }
  /// What a run throws; empty: nothing.
  static std::string told(Pipeline& pipeline) {
    try {
      pipeline.run();
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  /// A kernel that calls something on the host.
  Codelet calling(std::function<void()> call) {
    Codelet kernel = increment_;
    kernel.name = "calling";
    kernel.cpu = [call = std::move(call)](const Arguments&) { call(); };
    return kernel;
  }
};

TEST_P(NestedTest, AKernelCannotWaitForItsEngine) {
  for (const bool by_kernel : {false, true}) {
    const Codelet kernel = calling([&] { inner_sum(*engine_, by_kernel); });
    Pipeline pipeline(options());
    pipeline.source(numbers({1, 1, 1, 1})).kernel(kernel, {updates("x")});
    const std::string text = told(pipeline);
    EXPECT_NE(text.find(own_engine), std::string::npos) << text;
    EXPECT_NE(text.find("stage 'calling'"), std::string::npos) << text;
  }
  const Codelet kernel = calling([&] { inner_run(*engine_); });
  Pipeline pipeline(options());
  pipeline.source(numbers({1, 1})).kernel(kernel, {updates("x")});
  EXPECT_NE(told(pipeline).find(own_engine), std::string::npos);
}

TEST_P(NestedTest, ATaskCannotWaitForItsEngine) {
  Codelet task = calling([&] { inner_sum(*engine_, true); });
  task.submits = GetParam() == Where::host;
  double element = 0;
  const Data data = engine_->data(&element, 1, 1, 1, DType::float64);
  engine_->submit(task, {{data, Access::update}});
  try {
    engine_->wait();
    FAIL() << "the task has run a pipeline";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(own_engine), std::string::npos) << error.what();
  }
}

/// Beside accelerators, and by the virtual clock, bodies on the host hold nothing that others need.
TEST_P(NestedTest, AStageOnTheHostWaitsForItsEngineWhereItHoldsNoCore) {
  for (const bool by_kernel : {false, true}) {
    double sum = 0;
    Pipeline pipeline(options());
    pipeline.source(numbers({1, 1, 1})).serial([&](Chunk&) {
      sum += inner_sum(*engine_, by_kernel);
      sum += inner_run(*engine_);
    });
    const std::string text = told(pipeline);
    if (GetParam() == Where::host)
      EXPECT_NE(text.find(own_engine), std::string::npos) << text;
    else
      EXPECT_EQ(text, "");
    EXPECT_EQ(sum, GetParam() == Where::host ? 0 : 3 * (6 + 4));
  }
}

TEST_P(NestedTest, AnEngineOfItsOwnIsNoEngineThatWaitsForIt) {
  EngineOptions one;
  one.devices = "cpu:1";
  Engine other(one);
  for (const bool by_kernel : {false, true}) {
    // Three levels: what the middle one runs on the other engine may not wait for the first.
    const Codelet back = calling([&] { inner_sum(*engine_, true); });
    const Codelet kernel = calling([&] {
      PipelineOptions middle;
      middle.engine = &other;
      Pipeline pipeline(middle);
      pipeline.source(numbers({1, 1}));
      if (by_kernel)
        pipeline.kernel(back, {updates("x")});
      else
        pipeline.parallel([&](Chunk&) { inner_sum(*engine_, true); });
      pipeline.run();
    });
    Pipeline pipeline(options());
    pipeline.source(numbers({1, 1, 1, 1})).kernel(kernel, {updates("x")});
    EXPECT_NE(told(pipeline).find(own_engine), std::string::npos);
  }
  const Codelet kernel = calling([&] { inner_sum(other, true); });
  Pipeline pipeline(options());
  pipeline.source(numbers({1, 1, 1, 1})).kernel(kernel, {updates("x")});
  EXPECT_EQ(told(pipeline), "");
}

TEST_P(NestedTest, ResultsOfARunThatBeganOutsideAreNoWayAround) {
  Pipeline before(options());
  before.source(numbers(std::vector<std::int64_t>(200, 1)))
      .kernel(double_, {reads("x"), writes("y", like_x)});
  before.next();
  const Codelet kernel = calling([&] {
    while (before.next()) {
    }
  });
  Pipeline pipeline(options());
  pipeline.source(numbers({1, 1})).kernel(kernel, {updates("x")});
  EXPECT_NE(told(pipeline).find(own_engine), std::string::npos);
}

/// The run's own bodies don't know who waits for it: it began before that.
TEST_P(NestedTest, ARunThatBeganOutsideMayNotComeBackToABodyThatWaitsForIt) {
  if (GetParam() == Where::virtual_clock) GTEST_SKIP() << "another thread's run would drive it";
  EngineOptions one;
  one.devices = "cpu:1";
  Engine other(one);
  PipelineOptions there;
  there.engine = &other;
  Pipeline before(there);
  before.source(numbers({1, 1, 1})).parallel([&](Chunk& chunk) {
    if (chunk.number() == 0) return;
    while (!is_awaited(other)) std::this_thread::yield();
    inner_sum(*engine_, true);
  });
  EXPECT_TRUE(before.next().has_value());
  const Codelet kernel = calling([&] {
    while (before.next()) {
    }
  });
  Pipeline pipeline(options());
  pipeline.source(numbers({1, 1, 1, 1})).kernel(kernel, {updates("x")});
  EXPECT_NE(told(pipeline).find(own_engine), std::string::npos);
}

/// Who ends a run waits for it as well.
TEST_P(NestedTest, AnEndOfARunIsAWait) {
  if (GetParam() == Where::virtual_clock) GTEST_SKIP() << "another thread's run would drive it";
  EngineOptions one;
  one.devices = "cpu:1";
  Engine other(one);
  PipelineOptions there;
  there.engine = &other;
  std::string said;
  auto before = std::make_unique<Pipeline>(there);
  before->source(numbers({1, 1, 1})).parallel([&](Chunk& chunk) {
    if (chunk.number() == 0) return;
    while (!is_awaited(other)) std::this_thread::yield();
    PipelineOptions back;
    back.engine = engine_.get();
    Pipeline pipeline(back);
    pipeline.source(numbers({1})).kernel(increment_, {updates("x")});
    said = told(pipeline);
  });
  EXPECT_TRUE(before->next().has_value());
  const Codelet kernel = calling([&] { before.reset(); });
  Pipeline pipeline(options());
  pipeline.source(numbers({1})).kernel(kernel, {updates("x")});
  EXPECT_EQ(told(pipeline), "");
  EXPECT_NE(said.find(own_engine), std::string::npos) << said;
}

/// Each may wait as long as the other doesn't.
TEST_P(NestedTest, EnginesWaitForOneAnotherOneAfterTheOther) {
  if (GetParam() == Where::virtual_clock) GTEST_SKIP() << "one thread runs all of it";
  EngineOptions one;
  one.devices = "cpu:1";
  Engine other(one);
  for (Engine* const outer : {engine_.get(), &other, engine_.get()}) {
    Engine& inner = outer == &other ? *engine_ : other;
    const Codelet kernel = calling([&] { EXPECT_EQ(inner_sum(inner, true), 6); });
    PipelineOptions here;
    here.engine = outer;
    Pipeline pipeline(here);
    pipeline.source(numbers({1, 1, 1})).kernel(kernel, {updates("x")});
    EXPECT_EQ(told(pipeline), "");
  }
}

TEST_P(NestedTest, SourcesAndFlatMapsMayWait) {
  double sum = 0;
  Pipeline pipeline(options());
  pipeline.source(numbers({1, 1, 1})).flat_map([&](Chunk&) {
    sum += inner_sum(*engine_, true);
    return [](Chunk&) { return false; };
  });
  EXPECT_EQ(told(pipeline), "");
  EXPECT_EQ(sum, 18);
}

INSTANTIATE_TEST_SUITE_P(Engines, NestedTest, all_engines(), engine_name);

TEST(Nested, MoreBodiesMayWaitThanTheEngineHasThreadsForThem) {
  EngineOptions few;
  few.devices = "emulated:1,memory=1MiB";
  few.blocking_threads = 2;
  Engine engine(few);
  const auto empty_chunks = [](std::uint64_t count) {
    return [count](Chunk& chunk) { return chunk.number() < count; };
  };
  PipelineOptions options;
  options.engine = &engine;
  options.threads = 8;
  Pipeline pipeline(options);
  pipeline.source(empty_chunks(16)).parallel([&](Chunk&) {
    Pipeline inner(options);
    inner.source(empty_chunks(4)).parallel([](Chunk&) {}).run();
  });
  EXPECT_EQ(pipeline.run().chunks, 16u);
}

}  // namespace
}  // namespace quadriga
