// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/lost_device_test.cpp: what goes on once devices are lost: tasks run on the host
// from its copies, what was home stays, and somebody is told why.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <string>
#include <vector>

#include "base/log.h"
#include "device/factory.h"
#include "engine/engine_access.h"
#include "engine/on_host.h"

namespace quadriga {
namespace {

constexpr double patience = 300;
constexpr int tiles = 40;

/// Devices, two or as many, and a CPU that is not meant to compute.
WrappedOptions losing(std::vector<FaultPlan::Loss> losses, bool virtual_clock, int devices = 2) {
  WrappedOptions options;
  options.machine = Machine::parse("emulated:" + std::to_string(devices) + ",memory=1MiB");
  for (const char* const rates : {"emulated", ""})
    options.machine->kernels["unit"][rates][1] = 2e-3;  // few are issued ahead
  options.virtual_clock = virtual_clock;
  options.wrap_backend = [losses](std::unique_ptr<Backend> backend) {
    return make_faulty_backend(std::move(backend), {.losses = losses});
  };
  return options;
}

/// The message of the error that a call throws.
template <class Call>
std::string said_by(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class LostDevice : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    plus_.name = "plus";
    plus_.access = {Access::update};
    plus_.cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
    plus_.cpu = [](const Arguments& call) { call.operands[0].as<double>()[0] += 1; };
    set_log_sink([this](LogLevel, std::string_view message) { said_ += message; });
  }
  void TearDown() override { set_log_sink({}); }
  /// One task a tile, from several submissions; returns how many tiles came home with its result.
  int run(const WrappedOptions& options) {
    values_.assign(tiles, 0);
    Engine engine(EngineAccess::make(options));
    std::vector<Data> data;
    for (double& value : values_) data.push_back(engine.data(&value, 1, 1, 1, DType::float64));
    for (const Data& each : data) engine.submit(plus_, {{each, Access::update}});
    int good = 0;
    for (int i = 0; i < tiles; ++i) {
      try {
        engine.wait(data[static_cast<std::size_t>(i)], patience);
        good += values_[static_cast<std::size_t>(i)] == 1;
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == Errc::device_lost || error.code() == Errc::task_failed)
            << error.what();
        EXPECT_EQ(values_[static_cast<std::size_t>(i)], 0) << "a lost tile's home was touched";
      }
    }
    return good;
  }

  Codelet plus_;
  std::vector<double> values_;
  std::string said_;
};

TEST_P(LostDevice, TheHostTakesOverFromItsCopies) {
  // What was home stays so, and what wasn't runs again: nothing but what had ended on a device and
  // not come home is lost.
  EXPECT_GE(run(losing({{0, 10}, {1, 10}}, GetParam())), tiles - 10);
  EXPECT_NE(said_.find("'emulated0' is set aside"), std::string::npos) << said_;
  EXPECT_NE(said_.find("'emulated1' is set aside"), std::string::npos) << said_;
}

TEST_P(LostDevice, TheHostComputesNothingAsLongAsADeviceIsLeft) {
  EXPECT_GE(run(losing({{0, 10}}, GetParam())), tiles - 5);
  EXPECT_NE(said_.find("'emulated0' is set aside"), std::string::npos) << said_;
  EXPECT_EQ(said_.find("'emulated1' is set aside"), std::string::npos) << said_;
}

TEST_P(LostDevice, WhatWasInFlightRunsAgain) {
  // The second copy meets the loss; most tasks are queued by then.
  EXPECT_EQ(run(losing({{0, 1}}, GetParam())), tiles);
  EXPECT_EQ(run(losing({{0, 1}, {1, 1}}, GetParam())), tiles);
}

TEST_P(LostDevice, TheEndOfAnEngineTellsOfContentThatIsGoneUnlessAWaitDid) {
  constexpr int first_way_home = 2 * tiles + 1;  // behind each tile's fetch and task
  for (const bool waits : {false, true}) {
    values_.assign(tiles, 0);
    Engine engine(EngineAccess::make(losing({{0, first_way_home}}, GetParam(), 1)));
    std::vector<Future> futures;
    for (double& value : values_) {
      const Data data = engine.data(&value, 1, 1, 1, DType::float64, {.resident = true});
      futures.push_back(engine.submit(plus_, {{data, Access::update}}));
    }
    for (const Future& future : futures) said_by([&] { engine.wait(future, patience); });
    const auto end = [&] { bring_all_home(engine); };
    const std::string said = waits ? said_by([&] { engine.wait(patience); }) : said_by(end);
    EXPECT_NE(said.find("lost"), std::string::npos) << said;
    EXPECT_EQ(said_by(end), "");
  }
}

INSTANTIATE_TEST_SUITE_P(, LostDevice, testing::Bool(), [](const auto& given) {
  return std::string(given.param ? "VirtualClock" : "RealClock");
});

}  // namespace
}  // namespace quadriga
