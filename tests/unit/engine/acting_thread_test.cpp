// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/acting_thread_test.cpp: a thread that acts for another one, whose accesses by
// on_host() begin and end meanwhile.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <array>
#include <atomic>
#include <exception>
#include <string>
#include <thread>

#include "engine/others.h"
#include "sanitized.h"
#include "unit/engine/engines.h"

namespace quadriga {
namespace {

class ActingThreadTest : public testing::TestWithParam<const char*> {};

/// As a source does that is read while the loop over its results accesses what it lends.
TEST_P(ActingThreadTest, NeitherIsRefusedNorWaitsForTheOther) {
  constexpr int rounds = is_sanitized ? 10000 : 100000;
  Engine engine({.devices = GetParam()});
  std::array<double, 100> home{};
  const Data mine = engine.data(home.data(), 100, 1, 100, DType::float64);
  const Region half = region_of(View{home.data(), 50, 1, 50, DType::float64});
  const std::array<HeldRegion, 1> regions{{{half, Access::update}}};
  std::atomic<bool> ends{false};
  std::atomic<int> followed{0};
  std::atomic<bool> has_failed{false};
  std::string refused;
  std::thread other([&, runner = std::this_thread::get_id()] {
    try {
      for (; !ends; ++followed) follow_all(regions, runner);
    } catch (const std::exception& error) {
      refused = error.what();
      has_failed = true;
    }
  });
  EXPECT_NO_THROW({
    for (int i = 0; i < rounds || (followed < rounds && !has_failed); ++i)
      engine.on_host(mine, Access::update).release();
  });
  {
    // Within an access nobody waits for its end.
    const HostAccess access = engine.on_host(mine, Access::update);
    const int before = followed;
    while (followed < before + 2 && !has_failed) std::this_thread::yield();
  }
  ends = true;
  other.join();
  EXPECT_EQ(refused, "");
  engine.remove(mine);
}

INSTANTIATE_TEST_SUITE_P(Engines, ActingThreadTest,
                         testing::Values("cpu:2", "emulated:2,memory=1MiB"));

}  // namespace
}  // namespace quadriga
