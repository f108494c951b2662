// SPDX-License-Identifier: BSD-3-Clause
// src/device/wiring.cpp: rates by generation, lanes and number of links, until they are measured.
#include "device/wiring.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace quadriga {
namespace {

constexpr double issue_seconds = 1.3e-6;
constexpr double host_memory_rate = 205e9;
constexpr int oldest_generation = 3;

// What copies by runs reach of PCIe while products run: H200s, in both directions and whatever the
// pitch.
std::map<double, double> usual_runs() { return {{8192, 0.59}, {16384, 0.59}, {65536, 1}}; }

struct Ends {
  int down = 0;  // PCIe, to the device.
  int up = 0;
  int out = 0;  // NVLinks to switches.
  int in = 0;
};

int wire(Machine& machine, std::string name, double rate, double latency) {
  machine.links.push_back({std::move(name), rate, latency});
  return static_cast<int>(machine.links.size()) - 1;
}

bool has_switch(const GpuReading& gpu) {
  for (const NvlinkReading& link : gpu.nvlinks)
    if (link.to_switch) return true;
  return false;
}

double rate_or(double rate, double otherwise) { return rate > 0 ? rate : otherwise; }

Ends add_ends(Machine& machine, int number, const GpuReading& gpu) {
  const auto name = [number](const char* link, const char* way) {
    return fmt::format("{}{} {}", link, number, way);
  };
  // Virtual machines name slots of the first generations, which no GPU of today is plugged into.
  const int generation = gpu.pcie_generation >= oldest_generation ? gpu.pcie_generation : 0;
  const double pcie =
      rate_or(pcie_bytes_per_second(generation, gpu.pcie_lanes), usual_pcie_rate(gpu.major));
  const double nvlink = rate_or(
      nvlink_bytes_per_second(static_cast<int>(gpu.nvlinks.size()), gpu.nvlink_bytes_per_second),
      usual_nvlink_rate(gpu.major));
  Ends ends;
  ends.down = wire(machine, name("pcie", "down"), pcie, issue_seconds);
  ends.up = wire(machine, name("pcie", "up"), pcie, issue_seconds);
  for (const int link : {ends.down, ends.up}) machine.links[link].runs = usual_runs();
  // Without readings, two that NVLinks join are taken to be on switches.
  if (gpu.nvlinks.empty() || has_switch(gpu)) {
    ends.out = wire(machine, name("nvlink", "out"), nvlink, issue_seconds);
    ends.in = wire(machine, name("nvlink", "in"), nvlink, 0);
  }
  return ends;
}

class Wiring {
 public:
  Wiring(Machine& machine, std::span<const GpuReading> gpus) : machine_(machine), gpus_(gpus) {
    for (const Device& device : machine.devices)
      if (device.space != host_space) spaces_.push_back(device.space);
    memory_ = wire(machine, "host-memory", host_memory_rate, 0);
    for (std::size_t i = 0; i < spaces_.size(); ++i) {
      ends_.push_back(add_ends(machine, static_cast<int>(i), gpus[i]));
      machine.routes.push_back({host_space, spaces_[i], {memory_, ends_[i].down}});
      machine.routes.push_back({spaces_[i], host_space, {ends_[i].up, memory_}});
    }
  }

  void join(int from, int to, PeerPath reach) {
    Route route{spaces_[from], spaces_[to], {}};
    const Ends& source = ends_[from];
    const Ends& target = ends_[to];
    if (reach == PeerPath::host) {
      route.links = {source.up, memory_, memory_, target.down};
    } else if (reach == PeerPath::pcie) {
      route.links = {source.up, target.down};
    } else {
      route.nvlinks = nvlinks_between(gpus_[from], gpus_[to]);
      route.links = source.out > 0 && target.in > 0
                        ? std::vector{source.out, target.in}
                        : std::vector{own_link(from, to, route.nvlinks)};
    }
    machine_.routes.push_back(std::move(route));
  }

  int count() const { return static_cast<int>(spaces_.size()); }

 private:
  // Of NVLinks that join two devices without a switch.
  int own_link(int from, int to, int nvlinks) {
    const GpuReading& gpu = gpus_[from];
    const double rate = nvlink_bytes_per_second(nvlinks, gpu.nvlink_bytes_per_second);
    return wire(machine_, fmt::format("nvlink{}-{}", from, to),
                rate_or(rate, usual_nvlink_rate(gpu.major)), issue_seconds);
  }

  Machine& machine_;
  std::span<const GpuReading> gpus_;
  std::vector<SpaceId> spaces_;
  std::vector<Ends> ends_;
  int memory_ = 0;
};

}  // namespace

double pcie_bytes_per_second(int generation, int lanes) {
  // Transfers a second of a lane, and the share of them that are data.
  constexpr std::array<double, 7> transfers{2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9, 128e9};
  constexpr double old_code = 8.0 / 10;
  constexpr double new_code = 128.0 / 130;
  // Headers and replies; by pinned copies of 1 GiB on generations 4 and 5.
  const double share = generation >= 5 ? 0.88 : 0.8;
  if (generation < 1 || lanes < 1) return 0;
  const auto index = std::min<std::size_t>(static_cast<std::size_t>(generation), transfers.size());
  const double code = generation < 3 ? old_code : new_code;
  return transfers[index - 1] * lanes * code / 8 * share;
}

double nvlink_bytes_per_second(int links, double bytes_per_second) {
  constexpr double share = 0.83;  // 396 of 478 GB/s on 18 links of the fourth generation.
  return links * bytes_per_second * share;
}

double usual_pcie_rate(int major) {
  if (major >= 9) return 55e9;
  return major == 8 ? 25e9 : 12.5e9;
}

double usual_nvlink_rate(int major) { return major >= 9 ? 390e9 : 230e9; }

void add_links(Machine& machine, std::span<const GpuReading> gpus,
               const std::function<PeerPath(int, int)>& reach) {
  Wiring wiring(machine, gpus);
  for (int from = 0; from < wiring.count(); ++from) {
    for (int to = 0; to < wiring.count(); ++to)
      if (from != to) wiring.join(from, to, reach(from, to));
  }
}

}  // namespace quadriga
