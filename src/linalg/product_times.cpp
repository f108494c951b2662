// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/product_times.cpp: times of products and copies by a machine's rates.
#include "linalg/product_times.h"

#include "linalg/home_links.h"
#include "linalg/kernels/codelet_parts.h"
#include "linalg/real.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace quadriga::linalg {
namespace {

std::string_view kernel_name(DType dtype) {
  return kernels::gemm_names[kernels::type_index(dtype)];
}

void append(std::vector<double>& key, const std::map<double, double>& table) {
  key.push_back(static_cast<double>(table.size()));
  for (const auto& [at, value] : table) key.insert(key.end(), {at, value});
}

}  // namespace

ProductTimes::ProductTimes(const Engine& engine, const DeviceGroup& group, const Problem& problem)
    : engine_(engine),
      group_(group),
      kernel_(kernel_name(problem.dtype)),
      element_(real(static_cast<std::int64_t>(size_of(problem.dtype)))) {
  if (group.size() < 2) return;
  const auto space = [&](std::int64_t place) {
    return engine.machine().devices[group.device(place)].space;
  };
  has_peers_ = engine.machine().route(space(0), space(1)) != nullptr;
}

/// The table is of cubes; short sums read and write C more often.
double ProductTimes::product(std::int64_t rows, std::int64_t cols, std::int64_t inner) const {
  const double launches = group_.resident ? 1 : 4;  // its own, and those of its tiles' copies
  const double volume = real(rows) * real(cols) * real(inner);
  const Machine& machine = engine_.machine();
  return launches * machine.launch_seconds +
         kernel_seconds(engine_, group_, kernel_, std::cbrt(volume), volume) /
             machine.devices[group_.devices.front()].share_of_sum(real(inner));
}

double ProductTimes::product(std::int64_t rows, std::int64_t cols, std::int64_t inner,
                             std::size_t place) const {
  const Machine& machine = engine_.machine();
  const DeviceId own = group_.devices[place];
  const bool is_known = machine.has_kernel(machine.devices[own], kernel_);
  const Device& device = machine.devices[is_known ? own : group_.devices.front()];
  const double volume = real(rows) * real(cols) * real(inner);
  return machine.launch_seconds +
         machine.kernel_seconds(device, kernel_, std::cbrt(volume), volume) /
             device.share_of_sum(real(inner));
}

double ProductTimes::share(std::int64_t rows, std::int64_t all_rows) const {
  return rows == all_rows ? 1 : group_.share_by_runs(real(rows) * element_);
}

std::size_t ProductTimes::streams() const {
  return static_cast<std::size_t>(
      engine_.machine().devices[group_.devices.front()].compute_streams);
}

std::int64_t ProductTimes::full_run() const {
  if (!group_.slowed_by_runs) return 1;
  return static_cast<std::int64_t>(group_.slowed_by_runs->runs.rbegin()->first / element_);
}

double ProductTimes::copy(std::int64_t rows, std::int64_t cols, std::int64_t all_rows) const {
  const double run = real(rows) * element_;
  const double share = rows == all_rows ? 1 : group_.share_by_runs(run);
  return run * real(cols) * group_.seconds_a_byte / share;
}

void ProductTimes::append_to(std::vector<double>& key) const {
  key.insert(key.end(), {element_, has_peers_ ? 1.0 : 0.0, group_.seconds_a_byte});
  append(key, group_.slowed_by_runs ? group_.slowed_by_runs->runs : std::map<double, double>());
  const Machine& machine = engine_.machine();
  const PlanningCost& planning = machine.planning;
  key.insert(key.end(), {machine.launch_seconds, planning.engine_seconds, planning.task_seconds,
                         planning.product_seconds});
  for (const DeviceId each : group_.devices) {
    const Device& device = machine.devices[each];
    key.push_back(device.compute_streams);
    append(key, device.sums);
    if (machine.has_kernel(device, kernel_))
      append(key, machine.kernels.find(kernel_)->second.at(device.rates));
  }
  const std::vector<double> home_links = HomeLinks(machine, group_).key();
  key.insert(key.end(), home_links.begin(), home_links.end());
}

bool knows_products(const Engine& engine, const DeviceGroup& group, DType dtype) {
  if (group.size() == 0) return false;
  const Machine& machine = engine.machine();
  return machine.has_kernel(machine.devices[group.devices.front()], kernel_name(dtype));
}

}  // namespace quadriga::linalg
