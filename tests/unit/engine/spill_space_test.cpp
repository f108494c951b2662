// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/spill_space_test.cpp: an engine that is given a spill file has it as a memory
// space with links, to which the host's buffers are evicted, under both clocks.
#include <gtest/gtest.h>
#include <quadriga/engine.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "full_disk.h"

namespace quadriga {
namespace {

constexpr std::int64_t rows = 8192;
constexpr std::size_t tile_bytes = rows * sizeof(double);
constexpr int tiles = 24;

std::string fresh_path() {
  return (std::filesystem::temp_directory_path() / ("quadriga-spill-" + std::to_string(::getpid())))
      .string();
}

/// Two devices of three tiles, and buffers for four on the host.
EngineOptions spilling(bool virtual_clock) {
  EngineOptions options;
  options.machine = Machine::parse("emulated:2,memory=192KiB,h2d=10GB/s,d2h=10GB/s,latency=0us");
  options.machine->kernels["step"]["emulated"][1] = 1e-8;
  options.virtual_clock = virtual_clock;
  options.host_memory = 4 * tile_bytes;
  options.spill = fresh_path();
  return options;
}

Codelet step(const char* name, std::vector<Access> signature, Kernel kernel) {
  Codelet codelet;
  codelet.name = name;
  codelet.access = std::move(signature);
  codelet.cpu = std::move(kernel);
  codelet.cost = [](const Arguments&) { return Cost{"step", 1, 1}; };
  return codelet;
}

/// Fills so many tiles with ones, adds one to each, and sums up all elements.
double sum_of_tiles(Engine& engine, int count) {
  const Codelet fill = step("fill", {Access::write}, [](const Arguments& call) {
    for (std::int64_t i = 0; i < rows; ++i) call.operands[0].as<double>()[i] = 1;
  });
  const Codelet add = step("add", {Access::update}, [](const Arguments& call) {
    for (std::int64_t i = 0; i < rows; ++i) call.operands[0].as<double>()[i] += 1;
  });
  const Codelet gather = step("gather", {Access::read, Access::update}, [](const Arguments& call) {
    for (std::int64_t i = 0; i < rows; ++i)
      *call.operands[1].as<double>() += call.operands[0].as<double>()[i];
  });
  double sum = 0;
  const Data total = engine.data(&sum, 1, 1, 1, DType::float64);
  std::vector<Data> data;
  for (int i = 0; i < count; ++i) {
    data.push_back(engine.temporary(rows, 1, DType::float64));
    engine.submit(fill, {{data.back(), Access::write}});
  }
  for (const Data& each : data) engine.submit(add, {{each, Access::update}});
  for (const Data& each : data)
    engine.submit(gather, {{each, Access::read}, {total, Access::update}});
  engine.wait(60);
  return sum;
}

std::uint64_t bytes_on(const Counters& counters, SpaceId from, SpaceId to) {
  std::uint64_t bytes = 0;
  for (const LinkCounters& link : counters.links)
    if (link.source == from && link.target == to) bytes += link.bytes;
  return bytes;
}

class SpillSpaceTest : public testing::TestWithParam<bool> {};

TEST_P(SpillSpaceTest, TheFileIsADeviceOfTheMachineAndItsLinksCountWhatTheHostEvicts) {
  Engine engine(spilling(GetParam()));
  const Device& spill = engine.machine().devices.back();
  EXPECT_EQ(spill.name, "spill");
  EXPECT_GT(engine.machine().copy_seconds(host_space, spill.space, 1e9), 0);
  EXPECT_FALSE(engine.host_only());
  EXPECT_EQ(sum_of_tiles(engine, tiles), 2.0 * rows * tiles);
  const Counters counters = engine.counters();
  constexpr std::uint64_t beyond = (tiles - 10) * tile_bytes;
  EXPECT_GE(bytes_on(counters, host_space, spill.space), beyond);
  EXPECT_GE(bytes_on(counters, spill.space, host_space), beyond);
  EXPECT_LE(counters.spill_bytes, 4 * tile_bytes) << "the host's buffers keep to their limit";
  EXPECT_GE(counters.devices.back().most_bytes, beyond);
  EXPECT_EQ(counters.devices.back().tasks, 0u);
  EXPECT_FALSE(std::filesystem::exists(fresh_path()));
}

TEST_P(SpillSpaceTest, NothingGoesThereThatHasRoom) {
  Engine engine(spilling(GetParam()));
  EXPECT_EQ(sum_of_tiles(engine, 4), 2.0 * rows * 4);
  const SpaceId spill = engine.machine().devices.back().space;
  EXPECT_EQ(bytes_on(engine.counters(), host_space, spill), 0u);
}

INSTANTIATE_TEST_SUITE_P(Clock, SpillSpaceTest, testing::Bool());

double virtual_seconds(std::string_view rate) {
  Config::global().set("spill_rate", rate);
  Engine engine(spilling(true));
  sum_of_tiles(engine, tiles);
  Config::global().unset("spill_rate");
  return static_cast<double>(engine.counters().elapsed) * 1e-9;
}

TEST(SpillTest, TheVirtualClockChargesTheStatedRates) {
  const double fast = virtual_seconds("4GB/s");
  const double slow = virtual_seconds("10MB/s");
  const double slow_to_write = virtual_seconds("10MB/s,4GB/s");
  constexpr double bytes = (tiles - 10) * tile_bytes;
  EXPECT_GE(slow_to_write, bytes / 10e6);
  EXPECT_GE(slow, slow_to_write + 0.5 * bytes / 10e6);
  EXPECT_LT(fast, slow / 20);
}

TEST(SpillTest, WhatIsBelievedOfTheMachineHasTheFileToo) {
  EngineOptions options = spilling(true);
  options.believed = options.machine;
  Engine engine(std::move(options));
  EXPECT_EQ(engine.machine().devices.back().name, "spill");
  EXPECT_EQ(sum_of_tiles(engine, tiles), 2.0 * rows * tiles);
}

TEST(SpillTest, CoresAloneHaveTheFileAsTheirMemory) {
  EngineOptions options;
  options.devices = "cpu:2";
  options.spill = fresh_path();
  Engine engine(std::move(options));
  EXPECT_TRUE(engine.host_only());
  EXPECT_EQ(engine.machine().devices.size(), 1u);
  EXPECT_EQ(sum_of_tiles(engine, tiles), 2.0 * rows * tiles);
}

TEST(SpillTest, AFullDiskFailsATaskThatSaysSoAndTheEngineGoesOn) {
  set_log_level(LogLevel::off);
  const std::shared_ptr<void> until_here(nullptr, [](void*) { set_log_level(LogLevel::warning); });
  Config::global().set("spill_rate", "1GB/s");  // Nothing is measured: the disk is full.
  const FullDisk disk(4 * tile_bytes);
  Engine engine(spilling(false));
  Config::global().unset("spill_rate");
  try {
    sum_of_tiles(engine, tiles);
    ADD_FAILURE() << "24 tiles have no room in 14";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::too_large) << error.what();
    EXPECT_NE(std::string(error.what()).find("can't grow beyond"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find(fresh_path()), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace quadriga
