// SPDX-License-Identifier: BSD-3-Clause
// src/message/port_machine.cpp: descriptions of machines, changed and read.
#include "message/port_machine.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace quadriga::message {

Machine with_own_routes(Machine machine) {
  constexpr double faster_than_any_link = 1e13;
  for (const Device& device : machine.devices) {
    if (device.space == host_space || machine.route(device.space, device.space)) continue;
    machine.routes.push_back(
        {device.space, device.space, {static_cast<int>(machine.links.size())}});
    machine.links.push_back({"memory of " + device.name, faster_than_any_link, 0});
  }
  return machine;
}

Machine machine_of_cuda(int ordinal) {
  Machine all = Machine::parse("cuda");
  const auto wanted = static_cast<std::size_t>(ordinal);
  if (ordinal < 0 || wanted >= all.devices.size())
    fail(Errc::unavailable, fmt::format("there is no CUDA device {}; this machine has {}", ordinal,
                                        all.devices.size()));
  Machine one;
  one.name = all.name;
  one.kernels = all.kernels;
  one.launch_seconds = all.launch_seconds;
  one.message = all.message;
  Device device = all.devices[wanted];
  const SpaceId before = std::exchange(device.space, SpaceId{1});
  one.devices.push_back(device);
  one.links = all.links;
  for (Route route : all.routes) {
    const bool is_in = route.from == host_space && route.to == before;
    const bool is_out = route.from == before && route.to == host_space;
    if (!is_in && !is_out) continue;
    (is_in ? route.to : route.from) = 1;
    one.routes.push_back(route);
  }
  return one;
}

double best_rate_into(const Machine& machine, SpaceId space) {
  double best = 0;
  for (const Route& each : machine.routes) {
    if (each.to != space || each.from == space || each.from == host_space) continue;
    double rate = std::numeric_limits<double>::infinity();
    for (const int link : each.links)
      rate = std::min(rate, machine.links[static_cast<std::size_t>(link)].bytes_per_second);
    if (!each.links.empty()) best = std::max(best, rate);
  }
  return best;
}

}  // namespace quadriga::message
