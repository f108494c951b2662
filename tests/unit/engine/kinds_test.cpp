// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/kinds_test.cpp: a fourth kind of device, from a codelet's variant to tasks that
// run on it: all that it takes is a backend (tests/polled_backend.h) and a row in the table.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "model/graph/logged_run.h"
#include "plain_kind.h"

namespace quadriga {
namespace {

constexpr std::size_t memory_bytes = 4096;

/// The row.
const DeviceKind polled = polled_kind("polled", memory_bytes);

void add(const Arguments& arguments, double value) {
  const View& tile = arguments.operands[0];
  for (std::int64_t i = 0; i < tile.rows; ++i) tile.as<double>()[i] += value;
}

class FourthKind : public testing::Test {
 protected:
  FourthKind() {
    codelet_.variant(polled) = [this](const Arguments& arguments) {
      auto* const stream = static_cast<PolledStream*>(arguments.stream);
      stream->push_back([this, arguments, tile = arguments.operands[0]] {
        ++on_polled_;
        Arguments there = arguments;
        there.operands = {&tile, 1};
        add(there, 1);
      });
    };
  }
  void also_on_the_host() {
    codelet_.cpu = [this](const Arguments& arguments) {
      ++on_host_;
      add(arguments, 1);
    };
  }
  /// Ten updates of each of eight tiles, four of which fit a device at once.
  void run(const std::string& devices, const SubmitOptions& where = {}) {
    constexpr std::int64_t rows = 128;
    std::vector<std::vector<double>> tiles(8, std::vector<double>(rows, 5));
    Engine engine({.devices = devices});
    std::vector<Data> data;
    for (auto& tile : tiles)
      data.push_back(engine.data(tile.data(), rows, 1, rows, DType::float64));
    for (int step = 0; step < 10; ++step)
      for (const Data& each : data)
        engine.submit(codelet_, std::vector<Operand>{{each, Access::update}}, {}, where);
    engine.wait(300);
    for (const auto& tile : tiles) EXPECT_EQ(tile, std::vector<double>(rows, 15));
    EXPECT_EQ(on_polled_ + on_host_, 80);
  }

  Codelet codelet_{.name = "add one", .access = {Access::update}};
  std::atomic<int> on_polled_{0};
  std::atomic<int> on_host_{0};
};

TEST_F(FourthKind, RunsItsVariantOnItsMemory) {
  run("polled:1");
  EXPECT_EQ(on_polled_, 80);
}

TEST_F(FourthKind, IsTwoDevicesWithCopiesByWayOfTheHost) {
  run("polled");
  EXPECT_EQ(on_polled_, 80);
}

TEST_F(FourthKind, StandsBesideCoresAndEmulatedDevices) {
  also_on_the_host();
  run("polled:1;emulated:1,memory=1MiB;cpu:1");
  on_polled_ = on_host_ = 0;
  run("polled:1;cpu:1", {.device = 0});
  EXPECT_EQ(on_polled_, 80);
}

TEST_F(FourthKind, IsPreferredToAHostThatIsThereForWhatNeedsIt) {
  also_on_the_host();
  codelet_.host_only = true;
  run("polled:1");
  EXPECT_EQ(on_polled_, 80);
}

TEST_F(FourthKind, RefusesTasksWithoutAVariantForIt) {
  Engine engine({.devices = "polled:1;emulated:1"});
  Codelet other{.name = "other", .access = {}};
  other.variant(DeviceKind::cuda) = [](const Arguments&) {};
  EXPECT_THROW(engine.submit(other, {}), Error);
}

TEST_F(FourthKind, FailsWithWhatItsVariantThrows) {
  Engine engine({.devices = "polled:1"});
  Codelet wrong{.name = "wrong", .access = {}};
  wrong.variant(polled) = [](const Arguments&) { throw std::runtime_error("not today"); };
  engine.submit(wrong, {});
  try {
    engine.wait(300);
    FAIL() << "it did not fail";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("not today"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("polled0"), std::string::npos) << error.what();
  }
}

TEST_F(FourthKind, IsInTraces) {
  EngineOptions options{.devices = "polled:1"};
  options.trace = true;
  std::vector<double> tile(4, 0);
  Engine engine(options);
  engine.submit(codelet_, {{engine.data(tile.data(), 4, 1, 4, DType::float64), Access::update}});
  engine.wait(300);
  EXPECT_NE(engine.trace_json().find("polled0"), std::string::npos);
}

/// What a schedule log says of codelets names any kind.
TEST_F(FourthKind, IsInLogsOfSchedules) {
  also_on_the_host();
  const ReplayResult result = replay_text(logged_run([this] { run("polled;cpu:1"); }));
  EXPECT_TRUE(result.difference.empty()) << result.difference;
  EXPECT_GT(result.instructions, 80u);
}

}  // namespace
}  // namespace quadriga
