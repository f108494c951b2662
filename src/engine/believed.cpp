// SPDX-License-Identifier: BSD-3-Clause
// src/engine/believed.cpp: compares two descriptions of the same devices, and joins them.
#include "engine/believed.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <string>

namespace quadriga {
namespace {

std::string name_of(const Machine& machine, SpaceId space) {
  for (const Device& device : machine.devices)
    if (space != host_space && device.space == space) return device.name;
  return "host";
}

/// Without the one for what needs the host, which every engine has.
std::ptrdiff_t count_of(const Machine& machine) {
  return std::ranges::count_if(machine.devices, [](const Device& device) {
    return device.kind != DeviceKind::cpu || device.cores > 0;
  });
}

void expect_same_devices(const Machine& truth, const Machine& stated) {
  if (count_of(stated) != count_of(truth))
    fail(Errc::invalid_argument, fmt::format("believed: {} devices, the machine has {}",
                                             count_of(stated), count_of(truth)));
  for (std::size_t d = 0; d < std::min(truth.devices.size(), stated.devices.size()); ++d) {
    const Device& is = truth.devices[d];
    const Device& said = stated.devices[d];
    if (said.kind != is.kind || said.space != is.space)
      fail(Errc::invalid_argument,
           fmt::format("believed: device {} is '{}' of kind {}, the machine's '{}' of kind {}", d,
                       said.name, name(said.kind), is.name, name(is.kind)));
  }
  require(stated.devices.size() == truth.devices.size(),
          "believed: only one of the descriptions has a CPU without cores");
}

/// Who believes in a link that isn't there would queue copies that nothing can carry out.
void expect_routes(const Machine& truth, const Machine& stated) {
  for (const Route& route : stated.routes)
    if (truth.route(route.from, route.to) == nullptr)
      fail(Errc::invalid_argument,
           fmt::format("believed: a route from {} to {}, which the machine lacks",
                       name_of(truth, route.from), name_of(truth, route.to)));
}

Machine with_device_of_host(Machine stated, const Machine& truth) {
  const Device& last = truth.devices.back();
  const bool has_cpu = std::ranges::count(stated.devices, DeviceKind::cpu, &Device::kind) > 0;
  if (!has_cpu && last.kind == DeviceKind::cpu && last.cores == 0) stated.devices.push_back(last);
  return stated;
}

}  // namespace

Machine believed_machine(const Machine& truth, const EngineOptions& options) {
  require(options.virtual_clock,
          "believed: plans by another description are for the virtual clock");
  Machine believed = with_device_of_host(*options.believed, truth);
  expect_same_devices(truth, believed);
  expect_routes(truth, believed);
  for (std::size_t d = 0; d < truth.devices.size(); ++d) {
    Device device = truth.devices[d];
    device.rates = believed.devices[d].rates;
    device.sums = believed.devices[d].sums;
    believed.devices[d] = std::move(device);
  }
  return believed;
}

}  // namespace quadriga
