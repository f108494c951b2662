// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/reference_machine_test.cpp: that the description built in has what discovery
// takes from it.
#include "device/reference_machine.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <string>

namespace quadriga {
namespace {

TEST(ReferenceMachine, HasWhatIsScaledToOthers) {
  const Machine& machine = reference_machine();
  const Device& device = machine.devices.front();
  for (const char* const kernel : {"sgemm", "dgemm", "dsyrk", "dtrsm", "dpotrf"})
    EXPECT_FALSE(machine.kernels.at(kernel).at(device.rates).empty()) << kernel;
  EXPECT_FALSE(device.sums.empty());
  EXPECT_GT(machine.launch_seconds, 0);
}

TEST(ReferenceMachine, SaysHowFastItsDeviceIs) {
  const DeviceSpeed& speed = reference_speed();
  EXPECT_GE(speed.major, 7);
  EXPECT_GT(speed.processors, 0);
  EXPECT_GT(speed.clock_hertz, 1e8);
  EXPECT_GT(speed.memory_bytes_a_second, 1e11);
}

/// Each by another description: nothing of the code's own.
TEST(ReferenceMachine, SpeedsAreTheDescriptions) {
  const auto described = [](const std::string& speed) {
    return R"({"devices": [{"name": "gpu0", "speed": )" + speed + "}]}";
  };
  const std::string whole = R"({"capability": "8.6", "processors": 84, "clock": 1.7e9,
                                "memory_rate": 9.36e11})";
  EXPECT_EQ(speed_of_first(described(whole)), (DeviceSpeed{8, 6, 84, 1.7e9, 9.36e11}));
  for (const char* const key : {"capability", "processors", "clock", "memory_rate"}) {
    std::string part = whole;
    part.replace(part.find(key), 1, "x");
    try {
      speed_of_first(described(part));
      ADD_FAILURE() << key;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(speed_of_first(R"({"devices": [{"name": "gpu0"}]})"), Error);
}

}  // namespace
}  // namespace quadriga
