// SPDX-License-Identifier: BSD-3-Clause
// tests/model/soak/random_machine.cpp: changes what small_machine() makes all alike.
#include "model/soak/random_machine.h"

#include <fmt/format.h>

#include <cmath>

#include "model/graph/random_program.h"

namespace quadriga {
namespace {

/// Between 1 / most and most, any order of size as likely.
double factor(Random& random, double most) { return std::pow(most, 2 * random.uniform() - 1); }

/// What all copies between the host and some devices cross.
void add_switch(Machine& machine, Random& random) {
  const auto link = static_cast<int>(machine.links.size());
  machine.links.push_back({"switch", 2e9 * factor(random, 3), 1e-6 * random.uniform()});
  for (Route& route : machine.routes)
    if ((route.from == host_space || route.to == host_space) && random.chance(0.7))
      route.links.push_back(link);
}

void vary_devices(Machine& machine, Random& random, std::size_t tile_bytes) {
  for (std::size_t d = 0; d < machine.devices.size(); ++d) {
    Device& device = machine.devices[d];
    if (device.space == host_space) continue;
    const std::size_t tiles = 3 + (random.chance(0.5) ? 0 : random.below(8));
    device.memory_bytes = tiles * tile_bytes;
    if (random.chance(0.3)) {
      device.pitch_alignment = std::size_t{1} << random.below(8);
      device.memory_bytes = device.memory_bytes / 8 * 9;
    }
    if (random.chance(0.5)) continue;
    device.rates = fmt::format("kind{}", d);
    machine.kernels["mix"][device.rates] = {{1, 1e-7 * factor(random, 5)}};
  }
}

}  // namespace

Machine random_machine(Random& random, std::size_t tile_bytes) {
  const int devices = 1 + static_cast<int>(random.below(5));
  const int cores = static_cast<int>(random.below(3));
  Machine machine = small_machine(random, devices, cores, tile_bytes);
  vary_devices(machine, random, tile_bytes);
  if (random.chance(0.6))
    for (Link& link : machine.links) {
      link.bytes_per_second *= factor(random, 4);
      link.latency_seconds += random.chance(0.3) ? 1e-5 * random.uniform() : 0;
    }
  if (random.chance(0.4)) add_switch(machine, random);
  if (random.chance(0.2) && !machine.links.empty())
    machine.links[random.below(machine.links.size())].bytes_per_second *= 0.03;
  return machine;
}

Machine mistaken(Machine machine, Random& random) {
  const auto error = [&] { return factor(random, random.chance(0.1) ? 10 : 2); };
  for (Link& link : machine.links) link.bytes_per_second *= error();
  for (auto& [name, columns] : machine.kernels)
    for (auto& [column, times] : columns)
      for (auto& [order, seconds] : times) seconds *= error();
  return machine;
}

}  // namespace quadriga
