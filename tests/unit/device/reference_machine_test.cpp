// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/reference_machine_test.cpp: that the description built in has what discovery
// takes from it.
#include "device/reference_machine.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace quadriga
