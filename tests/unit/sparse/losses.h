// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/losses.h: engines whose emulated devices are lost, and who hears of it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "device/factory.h"
#include "engine/engine_access.h"

namespace quadriga::sparse::testing {

/// Keeps what the log says, which names each device that is lost.
class Losses : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_sink([this](LogLevel, std::string_view message) { said_ += message; });
  }
  void TearDown() override { set_log_sink({}); }

  /// Each loss: a device, and after how many of its calls.
  Engine losing(int devices, std::vector<FaultPlan::Loss> losses) {
    said_.clear();
    WrappedOptions options;
    options.devices = "emulated:" + std::to_string(devices) + ",memory=16MiB";
    options.wrap_backend = [losses](std::unique_ptr<Backend> backend) {
      return make_faulty_backend(std::move(backend), {.losses = losses});
    };
    return Engine(EngineAccess::make(std::move(options)));
  }
  /// Of the engine that was made last.
  void expect_lost(int device) const {
    const std::string name = "emulated" + std::to_string(device);
    EXPECT_NE(said_.find(name), std::string::npos) << name << " wasn't lost";
  }

 private:
  std::string said_;
};

}  // namespace quadriga::sparse::testing
