// SPDX-License-Identifier: BSD-3-Clause
// src/device/hardware_queues.cpp: orders of commands, and copies counted.
#include "device/hardware_queues.h"

#include <algorithm>
#include <limits>

namespace quadriga {

HardwareQueues::HardwareQueues(const Machine& machine) {
  for (const Device& device : machine.devices) {
    Queues& made = devices_.emplace_back();
    const bool is_host = device.space == host_space;
    made.engines = is_host ? std::numeric_limits<int>::max() : std::max(1, device.copy_engines);
    made.orders.resize(static_cast<std::size_t>(device.hardware_queues));
  }
}

HardwareQueues::Place HardwareQueues::add_stream(DeviceId device) {
  Queues& queues = devices_[device];
  const auto count = static_cast<std::uint32_t>(std::max<std::size_t>(1, queues.orders.size()));
  return {device, queues.streams++ % count};
}

void HardwareQueues::push(Place place, Kind kind, std::uint64_t sequence) {
  std::vector<Order>& orders = devices_[place.device].orders;
  if (!orders.empty()) orders[place.queue][static_cast<std::size_t>(kind)].push(sequence);
}

bool HardwareQueues::can_begin(Place place, Kind kind, std::uint64_t sequence) const {
  const Queues& queues = devices_[place.device];
  if (kind == Kind::copy && queues.copies >= queues.engines) return false;
  return queues.orders.empty() ||
         queues.orders[place.queue][static_cast<std::size_t>(kind)].front() == sequence;
}

void HardwareQueues::begin(Place place, Kind kind) {
  Queues& queues = devices_[place.device];
  if (kind == Kind::copy) ++queues.copies;
  if (!queues.orders.empty()) queues.orders[place.queue][static_cast<std::size_t>(kind)].pop();
}

}  // namespace quadriga
