// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/driver_devices_test.cpp: what a program is told about devices, without a
// driver.
#include "engine/driver_devices.h"

#include <gtest/gtest.h>

#include "device/factory.h"
#include "engine/kernel_streams.h"

namespace quadriga {
namespace {

/// Two emulated devices of different memory, and cores beside them.
class DriverDevicesTest : public ::testing::Test {
 protected:
  DriverDevicesTest() { spaces_.take_memory(machine_); }

  Machine machine_ = Machine::parse("emulated:1,memory=1MiB;emulated:1,memory=2MiB;cpu:3");
  std::unique_ptr<Backend> backend_ = make_virtual_backend(machine_);
  DeviceSpaces spaces_{*backend_, machine_};
  Graph graph_{8};
  Failures failures_;
  Recorder recorder_{machine_, false};
  RunRecord record_{recorder_, machine_, *backend_};
  Inbox inbox_;
  Releases releases_{graph_, inbox_};
  Waiters waiters_{[] { return Nanoseconds{0}; }};
  ScheduleNews news_{machine_, spaces_, {failures_, record_, releases_, waiters_}, nullptr, false};
  DriverDevices devices_{*backend_, machine_, spaces_, news_, waiters_};
};

TEST_F(DriverDevicesTest, MemoryIsWhatTilesMayFill) {
  EXPECT_EQ(devices_.memory_bytes(0), std::size_t{1} << 20);
  EXPECT_EQ(devices_.memory_bytes(1), std::size_t{2} << 20);
  EXPECT_EQ(devices_.memory_bytes(2), 0u) << "cores have none of their own";
}

TEST_F(DriverDevicesTest, AddressesAreOfTheDeviceThatHoldsThem) {
  const SpaceResources& second = spaces_.spaces()[machine_.devices[1].space];
  EXPECT_EQ(devices_.holder(second.base + 1), 1);
  EXPECT_EQ(devices_.holder(this), no_device);
}

TEST_F(DriverDevicesTest, ALostDeviceIsToldOnceTheScheduleTellsOfIt) {
  EXPECT_FALSE(devices_.is_lost(1));
  news_.device_lost(1);
  EXPECT_TRUE(devices_.is_lost(1));
  EXPECT_FALSE(devices_.is_lost(0));
}

TEST_F(DriverDevicesTest, WhereNothingWasKeptThereIsNoRoomToMake) {
  EXPECT_EQ(devices_.reserve_bytes(0), 0u);
  EXPECT_FALSE(devices_.make_room(0));
}

TEST_F(DriverDevicesTest, EachCoreAndEachDeviceHasStreamsForKernels) {
  const auto streams = make_kernel_streams(*backend_, machine_, record_);
  ASSERT_EQ(streams.size(), 3u);
  EXPECT_EQ(streams[2].size(), 3u) << "one a core";
  EXPECT_EQ(streams[0].size(), static_cast<std::size_t>(machine_.devices[0].compute_streams));
  for (DeviceId device = 0; device < 3; ++device)
    for (const StreamId stream : streams[device])
      EXPECT_EQ(record_.device_of_stream().at(stream), device);
}

}  // namespace
}  // namespace quadriga
