// SPDX-License-Identifier: BSD-3-Clause
// src/device/description.cpp: compares devices and carries links over.
#include "device/description.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>

namespace quadriga {
namespace {

std::string text_of(const Machine& machine) {
  std::string text;
  for (const Device& device : machine.devices) {
    if (device.space == host_space) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", device.name,
                        device.model.empty() ? "" : fmt::format(" ({})", device.model));
  }
  return text.empty() ? "no accelerator" : text;
}

const Device* find_same(const Machine& description, const Device& device) {
  const auto found = std::ranges::find(description.devices, device.name, &Device::name);
  if (found == description.devices.end() || found->space == host_space) return nullptr;
  const bool known = !found->model.empty() && !device.model.empty();
  return known && found->model != device.model ? nullptr : &*found;
}

void check_routes(const Machine& description, const Device& device) {
  if (description.route(host_space, device.space) && description.route(device.space, host_space))
    return;
  fail(Errc::invalid_argument, fmt::format("machine '{}' has no routes between host and {}",
                                           description.name, device.name));
}

// Keeps how many NVLinks join two devices where only that was read.
int nvlinks_of(const Machine& machine, const Route& route) {
  const Route* const found = machine.route(route.from, route.to);
  return route.nvlinks == 0 && found != nullptr ? found->nvlinks : route.nvlinks;
}

// The link on a way that tells what short runs reach; null if none does.
const Link* slowed_by_runs(const Machine& machine, const Route& route) {
  for (const int link : route.links)
    if (!machine.links[link].runs.empty()) return &machine.links[link];
  return nullptr;
}

// What short runs reach between host and device stays as it was supposed where the description is
// silent: on the narrowest link of the way.
void keep_runs(const Machine& before, const Machine& description, Machine& machine) {
  for (const Route& route : machine.routes) {
    if (route.from != host_space && route.to != host_space) continue;
    const Route* const old = before.route(route.from, route.to);
    const Link* const supposed = old == nullptr ? nullptr : slowed_by_runs(before, *old);
    if (supposed == nullptr || slowed_by_runs(description, route) != nullptr) continue;
    const int narrowest = *std::ranges::min_element(
        route.links, {}, [&](int link) { return machine.links[link].bytes_per_second; });
    machine.links[narrowest].runs = supposed->runs;
  }
}

}  // namespace

void use_description(Machine& machine, const Machine& description) {
  // Spaces of the machine by those of the description.
  std::vector<SpaceId> space_of(static_cast<std::size_t>(description.spaces()), no_space);
  space_of[host_space] = host_space;
  std::vector<Device> devices = machine.devices;
  for (Device& device : devices) {
    if (device.space == host_space) continue;
    const Device* const same = find_same(description, device);
    if (same == nullptr) {
      fail(Errc::invalid_argument,
           fmt::format("machine '{}' describes {}; here is machine '{}' with {}", description.name,
                       text_of(description), machine.name, text_of(machine)));
    }
    check_routes(description, *same);
    space_of[same->space] = device.space;
    if (!description.kernels.empty()) device.rates = same->rates;
    if (!same->sums.empty()) device.sums = same->sums;
  }
  std::vector<Route> routes;
  for (Route route : description.routes) {
    route.from = space_of[route.from];
    route.to = space_of[route.to];
    if (route.from == no_space || route.to == no_space) continue;
    route.nvlinks = nvlinks_of(machine, route);
    routes.push_back(std::move(route));
  }
  const Machine before = machine;
  machine.devices = std::move(devices);
  machine.routes = std::move(routes);
  machine.links = description.links;
  keep_runs(before, description, machine);
  if (!description.kernels.empty()) machine.kernels = description.kernels;
  if (description.launch_seconds > 0) machine.launch_seconds = description.launch_seconds;
  if (description.message.latency_seconds > 0) machine.message = description.message;
  if (description.planning.task_seconds > 0) machine.planning = description.planning;
}

}  // namespace quadriga
