// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/graph/poison_test.cpp: who keeps the address of a tile that left a device finds no
// content there.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <array>
#include <cmath>

namespace quadriga {
namespace {

#ifdef NDEBUG
constexpr bool poisons = false;
#else
constexpr bool poisons = true;
#endif

TEST(PoisonTest, BlocksThatWereFreedHoldNaN) {
  if (!poisons) GTEST_SKIP() << "only builds with assertions poison freed blocks";
  EngineOptions options;
  options.devices = "emulated:1,memory=1MiB";
  Engine engine(options);
  std::array<double, 8> home{};
  home.fill(1);
  double* kept = nullptr;
  Codelet keeping;
  keeping.name = "keeping";
  keeping.access = {Access::update};
  keeping.cpu = [&kept](const Arguments& arguments) {
    kept = arguments.operands[0].as<double>();
    for (std::size_t i = 0; i < 8; ++i) kept[i] += 1;
  };
  const Data data = engine.data(home.data(), 8, 1, 8, DType::float64, {.resident = true});
  engine.submit(keeping, {{data, Access::update}});
  engine.wait(300);
  ASSERT_NE(kept, home.data());
  EXPECT_EQ(kept[7], 2);
  engine.evict(data);
  engine.wait(300);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_TRUE(std::isnan(kept[i])) << i;
  EXPECT_EQ(home[0], 2);
}

}  // namespace
}  // namespace quadriga
