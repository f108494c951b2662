// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/broken_engine_test.cpp: runs end with what broke their engine.
#include <gtest/gtest.h>
#include <pthread.h>
#include <quadriga/pipeline.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/log.h"

namespace quadriga {
namespace {

bool is_driver() {
  std::array<char, 16> name{};
  return pthread_getname_np(pthread_self(), name.data(), name.size()) == 0 &&
         std::string_view(name.data()) == "quadriga driver";
}

/// The thread that decides asks for a task's cost, and can't go on without.
class BrokenEngine : public testing::Test {
 protected:
  void SetUp() override {
    set_log_sink([](LogLevel, std::string_view) {});
    copy_.name = "copy";
    copy_.access = {Access::read, Access::write};
    copy_.cpu = [](const Arguments& a) {
      std::copy_n(a.operands[0].as<double>(), a.operands[0].rows, a.operands[1].as<double>());
    };
    copy_.cost = [this](const Arguments&) -> Cost {
      if (is_driver() && ++asked_ == 5) throw std::runtime_error("no such figure");
      return Cost::of_seconds(1e-4);
    };
  }
  void TearDown() override { set_log_sink({}); }

  static bool fill(Chunk& chunk) {
    if (chunk.number() == 20) return false;
    std::fill_n(chunk.add("x", 100, 1, DType::float64).as<double>(), 100, 1.0);
    return true;
  }
  static FieldShape like_x(const Chunk& chunk) { return {chunk["x"].rows, 1, DType::float64}; }
  template <class Use>
  static std::string error_of(Use use) {
    try {
      use();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "none";
  }

  Codelet copy_;
  std::atomic<int> asked_{0};
};

TEST_F(BrokenEngine, EndsARunThatWaits) {
  Engine engine({.devices = "emulated:1,memory=1MiB"});
  Pipeline pipeline({.engine = &engine});
  pipeline.source(&BrokenEngine::fill).kernel(copy_, {reads("x"), writes("y", like_x)});
  EXPECT_EQ(error_of([&] { pipeline.run(); }), "no such figure");
}

TEST_F(BrokenEngine, EndsWhoAsksForResults) {
  Engine engine({.devices = "emulated:1,memory=1MiB"});
  Pipeline pipeline({.engine = &engine});
  pipeline.source(&BrokenEngine::fill).kernel(copy_, {reads("x"), writes("y", like_x)});
  EXPECT_EQ(error_of([&] {
              while (pipeline.next()) {
              }
            }),
            "no such figure");
}

}  // namespace
}  // namespace quadriga
