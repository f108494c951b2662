// SPDX-License-Identifier: BSD-3-Clause
// bench/paper_machine.cpp: devices, buses and routes.
#include "paper_machine.h"

#include <fmt/format.h>

namespace quadriga::bench {

Machine paper_machine(int devices, int hardware_queues) {
  Machine machine;
  machine.name = fmt::format("{} devices on 2 buses", devices);
  for (const char* const name : {"bus 0", "bus 1"})
    machine.links.push_back({name, bus_bytes_per_second});
  for (int i = 0; i < devices; ++i) {
    Device device;
    device.name = fmt::format("gpu{}", i);
    device.kind = DeviceKind::emulated;
    device.space = static_cast<SpaceId>(i + 1);
    device.memory_bytes = std::size_t{1} << 30;
    device.copy_engines = 1;
    device.hardware_queues = hardware_queues;
    device.rates = "gpu";
    machine.devices.push_back(device);
    machine.routes.push_back({host_space, device.space, {i % 2}});
    machine.routes.push_back({device.space, host_space, {i % 2}});
  }
  return machine;
}

}  // namespace quadriga::bench
