// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/slices_test.cpp: a tile that comes by way of another device arrives little
// later than there.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <vector>

#include "engine/engine_access.h"

namespace quadriga {
namespace {

constexpr std::int64_t rows = 256, columns = 256;

class RelayedTile : public testing::TestWithParam<bool> {};

TEST_P(RelayedTile, TakesAboutAsLongAsTheLongerWay) {
  WrappedOptions options;
  options.virtual_clock = GetParam();
  options.machine = Machine::parse("emulated:2,memory=4MiB,h2d=100MB/s,d2h=100MB/s,peer=100MB/s");
  for (Link& link : options.machine->links)
    if (link.name.starts_with("emulated1 ") && link.name.find("peer") == std::string::npos)
      link.bytes_per_second = 10e6;
  options.machine->kernels["unit"]["emulated"][1] = 1e-6;
  Engine engine(EngineAccess::make(options));
  std::vector<double> home(rows * columns);
  for (std::size_t i = 0; i < home.size(); ++i) home[i] = static_cast<double>(i);
  Codelet check;
  check.name = "check";
  check.access = {Access::read};
  check.cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
  std::size_t wrong = home.size();
  check.cpu = [&](const Arguments& call) {
    wrong = 0;
    const View& tile = call.operands[0];
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < rows; ++i)
        wrong += tile.as<double>()[i + j * tile.ld] != static_cast<double>(i + j * rows);
  };
  const Data data = engine.data(home.data(), rows, columns, rows, DType::float64);
  engine.submit(check, {{data, Access::read}}, {.device = 1});
  engine.wait(300);
  EXPECT_EQ(wrong, 0u);
  // 5.2 ms each way; 52 ms by the device's own link.
  if (GetParam()) {
    EXPECT_LT(static_cast<double>(engine.now()) / 1e6, 6.5);
  }
}

INSTANTIATE_TEST_SUITE_P(, RelayedTile, testing::Bool(), [](const auto& given) {
  return std::string(given.param ? "VirtualClock" : "RealClock");
});

}  // namespace
}  // namespace quadriga
