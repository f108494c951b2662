// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/kernel_times_test.cpp: what is remembered of kernels is what the machine
// says.
#include "schedule/kernel_times.h"

#include <gtest/gtest.h>

namespace quadriga {
namespace {

Machine with_times() {
  Machine machine = Machine::parse("cpu:1;emulated:2,memory=1MiB");
  for (Device& device : machine.devices) device.rates = device.space == host_space ? "cpu" : "gpu";
  // Twice the order at the same rate, and at a higher one.
  machine.kernels["even"]["gpu"] = {{100, 1e-3}, {200, 8e-3}};
  machine.kernels["steep"]["gpu"] = {{100, 1e-3}, {200, 4e-3}};
  machine.kernels["even"]["cpu"] = {{100, 1e-2}, {200, 8e-2}};
  return machine;
}

TEST(KernelTimes, AreTheMachinesTimes) {
  const Machine machine = with_times();
  KernelTimes times(machine);
  for (int round = 0; round < 2; ++round) {
    for (DeviceId device = 0; device < machine.devices.size(); ++device) {
      const bool is_host = machine.devices[device].space == host_space;
      for (const char* const kernel : {"even", "steep", "other"}) {
        for (const double order : {100.0, 150.0}) {
          const Cost cost{kernel, order, order * order * order};
          const KernelTime found = times.of(cost, device);
          ASSERT_EQ(found.known, machine.has_kernel(machine.devices[device], kernel));
          if (!found.known) continue;
          EXPECT_EQ(found.seconds, machine.kernel_seconds(machine.devices[device], kernel,
                                                          cost.order, cost.volume));
          EXPECT_EQ(found.fills, !is_host && std::string_view(kernel) == "even") << order;
        }
      }
    }
  }
  EXPECT_FALSE(times.of(Cost{}, 0).known);
}

TEST(KernelTimes, ThatAreTooManyAreFoundAnew) {
  const Machine machine = with_times();
  KernelTimes times(machine);
  const DeviceId device = 1;
  for (int round = 0; round < 2; ++round)
    for (int i = 1; i <= 10'000; ++i)
      ASSERT_EQ(times.of({"even", 100, static_cast<double>(i)}, device).seconds,
                machine.kernel_seconds(machine.devices[device], "even", 100, i));
}

}  // namespace
}  // namespace quadriga
