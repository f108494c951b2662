// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/stated_seconds_test.cpp: times of stages that can't be, by the virtual clock.
#include <gtest/gtest.h>
#include <quadriga/pipeline.h>

#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

namespace quadriga {
namespace {

/// 5 chunks through one stage, by the virtual clock.
struct StatedSeconds : testing::Test {
  StatedSeconds() {
    EngineOptions options;
    options.machine = Machine::parse("cpu:2");
    options.virtual_clock = true;
    engine.emplace(options);
  }
  Pipeline pipeline(OnError on_error = OnError::raise) {
    Pipeline made({.engine = &*engine, .on_error = on_error});
    made.source([](Chunk& chunk) { return chunk.number() < 5; });
    made.serial([](Chunk&) {}, "stage");
    return made;
  }
  static std::string failure_of(Pipeline& stated) {
    try {
      stated.run();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "none";
  }
  static double second_fails(const Chunk& chunk) {
    if (chunk.number() == 1) throw std::runtime_error("no such table");
    return 0.1;
  }

  std::optional<Engine> engine;
};

TEST_F(StatedSeconds, AFunctionThatThrowsFailsItsChunk) {
  for (const char* const stage : {"stage", "source"}) {
    Pipeline raising = pipeline();
    raising.takes(stage, second_fails);
    const std::string told = failure_of(raising);
    EXPECT_NE(told.find(std::string("'") + stage + "' failed at chunk 1"), std::string::npos)
        << told;
    EXPECT_NE(told.find("no such table"), std::string::npos) << told;

    Pipeline skipping = pipeline(OnError::skip);
    skipping.takes(stage, second_fails);
    EXPECT_EQ(failure_of(skipping), "none");
    EXPECT_EQ(skipping.failures().size(), 1u);
    EXPECT_EQ(skipping.stats().chunks, 4u);
  }
}

TEST_F(StatedSeconds, ThatArentATimeAreNamed) {
  for (const double seconds :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    for (const char* const stage : {"stage", "source"}) {
      Pipeline stated = pipeline();
      stated.takes(stage, [=](const Chunk& chunk) { return chunk.number() == 2 ? seconds : 0.1; });
      const std::string told = failure_of(stated);
      EXPECT_NE(told.find("chunk 2"), std::string::npos) << told;
      EXPECT_NE(told.find("takes(): expected seconds, at least 0"), std::string::npos) << told;
    }
}

}  // namespace
}  // namespace quadriga
