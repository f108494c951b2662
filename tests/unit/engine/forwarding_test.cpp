// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/forwarding_test.cpp: a tile that several devices want leaves the host once, and
// is passed on while it is still arriving.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <atomic>
#include <vector>

#include "engine/engine_access.h"

namespace quadriga {
namespace {

Codelet reader(Kernel kernel) {
  Codelet codelet;
  codelet.name = "read";
  codelet.access = {Access::read};
  codelet.cpu = std::move(kernel);
  codelet.cost = [](const Arguments&) { return Cost::of_seconds(1e-9); };
  return codelet;
}

/// Seconds of the virtual clock until so many devices have a tile of the host's, of 1 GiB; nothing
/// is computed.
Counters copy_to(const std::string& machine, int devices, std::int64_t rows, std::int64_t columns) {
  EngineOptions options;
  options.devices = "machine=" QUADRIGA_SOURCE_DIR "/machines/" + machine;
  options.virtual_clock = true;
  options.compute = false;
  Engine engine(options);
  const Codelet codelet = reader([](const Arguments&) {});
  alignas(64) static std::byte home;
  const Data data = engine.data(&home, rows, columns, rows, DType::bytes);
  for (int i = 0; i < devices; ++i)
    engine.submit(codelet, {{data, Access::read}}, {.device = static_cast<DeviceId>(i)});
  engine.wait();
  return engine.counters();
}

struct Shape {
  const char* name;
  std::int64_t rows;
  std::int64_t columns;
};

class ForwardedTile : public testing::TestWithParam<Shape> {};

TEST_P(ForwardedTile, ReachesFourDevicesLittleLaterThanOne) {
  const auto [name, rows, columns] = GetParam();
  const Counters one = copy_to("h200x4.json:4", 1, rows, columns);
  const Counters all = copy_to("h200x4.json:4", 4, rows, columns);
  EXPECT_EQ(all.host_bytes(), std::uint64_t{1} << 30) << "it leaves the host once";
  EXPECT_LT(static_cast<double>(all.elapsed), 1.1 * static_cast<double>(one.elapsed));
}

INSTANTIATE_TEST_SUITE_P(, ForwardedTile,
                         testing::Values(Shape{"Matrix", 1 << 16, 1 << 14},
                                         Shape{"Column", 1 << 30, 1}),
                         [](const auto& given) { return std::string(given.param.name); });

/// Real threads: what arrives in slices is what the host has.
TEST(ForwardedContent, IsThatOfTheHost) {
  constexpr std::int64_t rows = 1 << 17, columns = 37;
  std::vector<float> home(rows * columns);
  for (std::size_t i = 0; i < home.size(); ++i) home[i] = static_cast<float>(i % 65521);
  WrappedOptions options;
  options.devices = "emulated:4,memory=64MiB,h2d=1GB/s,d2h=1GB/s,peer=4GB/s";
  Engine engine(EngineAccess::make(options));
  std::atomic<std::size_t> wrong = 0;
  const Codelet check = reader([&](const Arguments& call) {
    const View& tile = call.operands[0];
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < rows; ++i)
        wrong += tile.as<float>()[i + j * tile.ld] != home[static_cast<std::size_t>(i + j * rows)];
  });
  const Data data = engine.data(home.data(), rows, columns, rows, DType::float32);
  for (DeviceId device = 0; device < 4; ++device)
    engine.submit(check, {{data, Access::read}}, {.device = device});
  engine.wait(60);
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace quadriga
