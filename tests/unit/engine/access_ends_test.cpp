// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/access_ends_test.cpp: accesses of the host that end while their engine does.
#include <gtest/gtest.h>
#include <malloc.h>
#include <quadriga/engine.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "unit/engine/engines.h"

namespace quadriga {
namespace {

/// What is used after its end isn't found as it was.
class AccessEndsTest : public testing::TestWithParam<Where> {
 protected:
  AccessEndsTest() { mallopt(M_PERTURB, 165); }
  ~AccessEndsTest() override { mallopt(M_PERTURB, 0); }
};

/// Another thread leaves its accesses one by one; the engine ends with those that are left.
TEST_P(AccessEndsTest, BesideTheEnginesEnd) {
  constexpr std::size_t count = 64;
  for (std::size_t round = 0; round < 400; ++round) {
    std::array<double, count> memory{};
    auto engine = EngineAccess::make_unique(options_for(GetParam()));
    std::vector<Data> data;
    for (double& each : memory) data.push_back(engine->data(&each, 1, 1, 1, DType::float64));
    std::atomic<std::size_t> left{0};
    std::atomic<bool> begun = false;
    std::thread other([&] {
      std::vector<HostAccess> accesses;
      for (const Data& each : data) accesses.push_back(engine->on_host(each, Access::update));
      begun = true;
      begun.notify_one();
      for (HostAccess& each : accesses) {
        each.release();
        left.fetch_add(1);
      }
    });
    begun.wait(false);
    while (left.load() < round % count) std::this_thread::yield();
    data.clear();
    engine.reset();
    other.join();
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, AccessEndsTest, testing::Values(Where::host, Where::emulated),
                         where_name);

}  // namespace
}  // namespace quadriga
