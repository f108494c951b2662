// SPDX-License-Identifier: BSD-3-Clause
// src/device/machine.cpp: what a machine answers about its routes and kernel times.
#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/config.h"
#include "device/backend.h"
#include "device/cuda/cuda_backend.h"
#include "device/host_move.h"

namespace quadriga {
namespace {

using Times = std::map<double, double>;

const Times* find_times(const Machine& machine, const Device& device, std::string_view kernel) {
  const auto by_column = machine.kernels.find(kernel);
  if (by_column == machine.kernels.end()) return nullptr;
  const auto times = by_column->second.find(device.rates);
  if (times == by_column->second.end() || times->second.empty()) return nullptr;
  return &times->second;
}

double rate_of(const Times::value_type& entry) {
  return entry.first * entry.first * entry.first / entry.second;
}

// How the rate order^3/seconds grows at the low end of a table: its exponent between the two least
// orders, at most that of a time that doesn't depend on the order.
double growth_of(const Times& times) {
  if (times.size() < 2) return 0;
  const auto& first = *times.begin();
  const auto& second = *std::next(times.begin());
  const double growth =
      std::log(rate_of(second) / rate_of(first)) / std::log(second.first / first.first);
  return std::clamp(growth, 0.0, 3.0);
}

// The rate order^3/seconds: linear between two orders of the table, constant above them, and below
// them falling as it does between the two least: what launches and long chains of short steps
// take doesn't shrink with the volume. Who states no order gets the rate of the least.
double rate_at(const Times& times, double order) {
  const auto above = times.lower_bound(order);
  if (above == times.begin())
    return rate_of(*above) * (order > 0 ? std::pow(order / above->first, growth_of(times)) : 1.0);
  const auto below = std::prev(above);
  if (above == times.end()) return rate_of(*below);
  const double part = (order - below->first) / (above->first - below->first);
  return rate_of(*below) + part * (rate_of(*above) - rate_of(*below));
}

// Linear in doublings between two entries; proportional below the first, and 1 above the last.
double share_at(const std::map<double, double>& shares, double length) noexcept {
  const auto above = shares.lower_bound(length);
  if (above == shares.end()) return 1;
  if (above == shares.begin()) return above->second * length / above->first;
  const auto below = std::prev(above);
  const double part = std::log2(length / below->first) / std::log2(above->first / below->first);
  return below->second + part * (above->second - below->second);
}

// What a Cost without a kernel of its own names, and rows of the table.
constexpr std::string_view stated_seconds = Cost::of_seconds(0).kernel;
constexpr std::string_view stated_work = Cost::of_work(0, 0).kernel;
constexpr std::string_view flops_row = "flops";
constexpr std::string_view bytes_row = "bytes";

}  // namespace

std::string_view name(StreamKind kind) noexcept {
  switch (kind) {
    case StreamKind::copy_in:
      return "copy_in";
    case StreamKind::copy_out:
      return "copy_out";
    case StreamKind::peer_in:
      return "peer_in";
    case StreamKind::compute:
      return "compute";
    case StreamKind::panel:
      return "panel";
  }
  return "unknown";
}

std::string Machine::cuda_absence() { return quadriga::cuda_absence(); }

Machine Machine::host() {
  Machine machine;
  machine.name = "host";
  Device cpu;
  cpu.name = "cpu";
  cpu.cores = computing_cores();
  cpu.compute_streams = cpu.cores;
  cpu.copy_engines = 0;
  cpu.rates = "cpu";
  machine.devices.push_back(cpu);
  return machine;
}

int Machine::spaces() const noexcept {
  int count = 1;
  for (const Device& device : devices) count = std::max(count, device.space + 1);
  return count;
}

double Device::share_of_sum(double length) const noexcept { return share_at(sums, length); }

double Link::share(double run_bytes) const noexcept { return share_at(runs, run_bytes); }

const Route* Machine::route(SpaceId from, SpaceId to, int node) const noexcept {
  const auto find = [&](int of_node) -> const Route* {
    const auto found = std::ranges::find_if(routes, [&](const Route& route) {
      return route.from == from && route.to == to && route.node == of_node;
    });
    return found == routes.end() ? nullptr : &*found;
  };
  const Route* const own = find(node);
  return own || node == any_node ? own : find(any_node);
}

double Machine::copy_seconds(SpaceId from, SpaceId to, double bytes) const noexcept {
  const Route* way = route(from, to);
  if (way == nullptr) return std::numeric_limits<double>::infinity();
  double latency = 0;
  double slowest = 0;  // Seconds a byte.
  for (const int link : way->links) {
    const auto crossings = static_cast<double>(std::ranges::count(way->links, link));
    latency += links[link].latency_seconds;
    slowest = std::max(slowest, crossings / links[link].bytes_per_second);
  }
  return latency + bytes * slowest;
}

double Machine::copy_rate(const Route& route, double run_bytes) const noexcept {
  double rate = std::numeric_limits<double>::infinity();
  for (const int link : route.links) {
    const auto crossings = static_cast<double>(std::ranges::count(route.links, link));
    const Link& crossed = links[link];
    rate = std::min(rate, crossed.bytes_per_second * crossed.share(run_bytes) / crossings);
  }
  return rate;
}

double Machine::kernel_seconds(const Device& device, std::string_view kernel, double order,
                               double volume) const {
  if (kernel == stated_seconds) return volume;
  if (kernel == stated_work) {
    const double computing = kernel_seconds(device, flops_row, std::cbrt(volume), volume);
    return std::max(computing, kernel_seconds(device, bytes_row, std::cbrt(order), order));
  }
  const Times* times = find_times(*this, device, kernel);
  const HostMove* const move = times ? nullptr : host_move(kernel);
  if (move != nullptr) {
    if (has_kernel(device, move->product))
      return kernel_seconds(device, move->product, order, volume);
    if (const double rate = host_memory_rate(*this); rate > 0 && device.space == host_space)
      return 2 * move->element_bytes * order * order / rate;
    fail(Errc::unavailable,
         fmt::format("machine '{}' tells no time of copies by device '{}': it has neither a time "
                     "of kernel '{}' (column '{}') nor a link of the host",
                     name, device.name, move->product, device.rates));
  }
  if (times == nullptr) {
    fail(Errc::unavailable,
         fmt::format("machine '{}' has no time of kernel '{}' for device '{}' (column '{}')", name,
                     kernel, device.name, device.rates));
  }
  return volume / rate_at(*times, order);
}

bool Machine::has_kernel(const Device& device, std::string_view kernel) const noexcept {
  if (kernel == stated_seconds) return true;
  if (kernel == stated_work) return has_kernel(device, flops_row) && has_kernel(device, bytes_row);
  if (find_times(*this, device, kernel)) return true;
  const HostMove* const move = host_move(kernel);
  return move && (has_kernel(device, move->product) ||
                  (device.space == host_space && host_memory_rate(*this) > 0));
}

}  // namespace quadriga
