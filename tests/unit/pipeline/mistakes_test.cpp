// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/mistakes_test.cpp: what newcomers get wrong is named, with what was expected.
#include <gtest/gtest.h>
#include <quadriga/pipeline.h>

#include <functional>
#include <string>

namespace quadriga {
namespace {

std::string told(const std::function<void(Pipeline&)>& work) {
  Pipeline pipeline({.devices = "cpu:2"});
  try {
    work(pipeline);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool one_chunk(Chunk& chunk) {
  chunk.add("x", 4, 1, DType::float64);
  return chunk.number() == 0;
}

TEST(Mistakes, APipelineHasASourceAndRunsOnce) {
  EXPECT_EQ(told([](Pipeline& p) { p.run(); }),
            "the pipeline has no source; give it one by source()");
  EXPECT_EQ(told([](Pipeline& p) {
              p.source(one_chunk).run();
              p.run();
            }),
            "a pipeline runs once; make another one for another run");
}

TEST(Mistakes, AFieldThatIsWrittenHasAShape) {
  EXPECT_EQ(told([](Pipeline&) { writes("y", nullptr); }),
            "field 'y' has no shape; expected a function of a chunk");
  EXPECT_EQ(told([](Pipeline&) { temporary("t", nullptr); }),
            "field 't' has no shape; expected a function of a chunk");
}

TEST(Mistakes, AKernelWithoutAVariantIsNamedWithTheDevices) {
  const Codelet bare{.name = "bare", .access = {Access::read}};
  EXPECT_EQ(told([&](Pipeline& p) { p.source(one_chunk).kernel(bare, {reads("x")}).run(); }),
            "kernel 'bare' has a variant for none of the devices (cpu)");
}

TEST(Mistakes, AStageThatSubmitsTasksIsToldToUseAnotherEngine) {
  const Codelet nothing{.name = "nothing", .access = {}, .cpu = [](const Arguments&) {}};
  const std::string text = told([&](Pipeline& p) {
    p.source(one_chunk).serial([&](Chunk&) { p.engine().submit(nothing, {}); }).run();
  });
  EXPECT_NE(text.find("a stage of a pipeline can't, and uses another engine"), std::string::npos)
      << text;
}

TEST(Mistakes, AFieldIsTruncatedToRowsThatItHas) {
  Chunk chunk;
  chunk.add("x", 4, 1, DType::float64);
  chunk.add("matrix", 2, 2, DType::float64);
  chunk.truncate("x", 3);
  EXPECT_EQ(chunk.values<double>("x").size(), 3u);
  EXPECT_THROW(chunk.truncate("x", 4), Error);
  EXPECT_THROW(chunk.truncate("x", -1), Error);
  EXPECT_THROW(chunk.truncate("matrix", 1), Error);
  EXPECT_THROW(chunk.truncate("y", 1), Error);
  chunk.truncate("x", 0);
  EXPECT_TRUE(chunk.values<double>("x").empty());
}

}  // namespace
}  // namespace quadriga
