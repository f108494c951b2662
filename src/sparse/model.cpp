// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/model.cpp: bytes by rates.
#include "sparse/model.h"

#include <quadriga/codelet.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace quadriga::sparse {
namespace {

/// Of a copy between two devices' memories, or by way of the host.
double copy_seconds(const Machine& machine, SpaceId from, SpaceId to, double bytes,
                    CopyRoute route) {
  if (from == to) return 0;
  if (route != CopyRoute::host && machine.route(from, to))
    return machine.copy_seconds(from, to, bytes);
  return machine.copy_seconds(from, host_space, bytes) +
         machine.copy_seconds(host_space, to, bytes);
}

double work_seconds(const Machine& machine, const Device& device, std::int64_t elements,
                    double bytes) {
  const Cost cost = Cost::of_work(2 * static_cast<double>(elements), bytes);
  return machine.kernel_seconds(device, cost.kernel, cost.order, cost.volume);
}

/// What the halo has to do with a product.
struct Stages {
  double inner_seconds = 0;               ///< Needs none of it.
  std::vector<double> remainder_seconds;  ///< By arrival; one for all where rows are whole.
  double all() const {
    return std::accumulate(remainder_seconds.begin(), remainder_seconds.end(), inner_seconds);
  }
};

Stages compute_stages(const Machine& machine, const Device& device, const PartPlan& plan) {
  const PartShape& shape = plan.shape;
  const auto element = static_cast<double>(size_of(shape.dtype));
  // The matrix, p with its halo, and q.
  const auto vectors = static_cast<double>(2 * shape.rows) * element;
  const auto halo = static_cast<double>(shape.halo) * element;
  const double own = static_cast<double>(shape.bytes) + vectors;
  if (!shape.has_remainders) {
    const double all = work_seconds(machine, device, shape.elements, own + halo);
    const double inner = shape.blocks > 0 ? static_cast<double>(shape.inner_blocks) /
                                                static_cast<double>(shape.blocks)
                                          : 1;
    return {inner * all, {(1 - inner) * all}};
  }
  Stages stages{work_seconds(machine, device, shape.elements, own), {}};
  for (std::size_t i = 0; i < plan.remainders.size(); ++i) {
    const PartShape& each = plan.remainders[i];
    const double moved = static_cast<double>(each.bytes + remainder_vector_bytes(each)) +
                         static_cast<double>(plan.arrivals[i].count) * element;
    stages.remainder_seconds.push_back(work_seconds(machine, device, each.elements, moved));
  }
  return stages;
}

/// A remainder follows the one before and its own elements, which arrive one after the other.
double reachable_seconds(const Stages& stages, const std::vector<double>& arrival_seconds) {
  double seconds = stages.inner_seconds;
  double arrived = 0;
  if (stages.remainder_seconds.size() != arrival_seconds.size()) {
    arrived = std::accumulate(arrival_seconds.begin(), arrival_seconds.end(), 0.0);
    return std::max(seconds, arrived) + (stages.all() - seconds);
  }
  for (std::size_t i = 0; i < arrival_seconds.size(); ++i) {
    arrived += arrival_seconds[i];
    seconds = std::max(seconds, arrived) + stages.remainder_seconds[i];
  }
  return seconds;
}

}  // namespace

std::vector<ProductModel> model_product(const Machine& machine, std::span<const PartPlan> plans,
                                        std::span<const DeviceId> devices, Exchange exchange,
                                        CopyRoute route) {
  std::vector<ProductModel> models;
  for (std::size_t part = 0; part < plans.size(); ++part) {
    if (devices[part] == no_device) return {};
    const Device& device = machine.devices[devices[part]];
    if (!machine.has_kernel(device, Cost::of_work(0, 0).kernel)) return {};
    const PartShape& shape = plans[part].shape;
    const Stages stages = compute_stages(machine, device, plans[part]);
    ProductModel model{stages.all(), 0, 0};
    std::vector<double> arrivals;
    const auto arrive = [&](std::size_t from, std::int64_t rows) {
      const auto bytes = static_cast<double>(rows) * static_cast<double>(size_of(shape.dtype));
      const SpaceId space = machine.devices[devices[from]].space;
      arrivals.push_back(copy_seconds(machine, space, device.space, bytes, route));
      model.exchange_seconds += arrivals.back();
    };
    if (exchange == Exchange::whole) {
      for (std::size_t from = 0; from < plans.size(); ++from)
        if (from != part) arrive(from, plans[from].shape.rows);
    } else {
      for (const HaloTransfer& each : plans[part].arrivals)
        arrive(static_cast<std::size_t>(each.from), each.count);
    }
    model.reachable_seconds = reachable_seconds(stages, arrivals);
    models.push_back(model);
  }
  return models;
}

double exchange_with(const Machine& machine, std::span<const PartPlan> plans,
                     std::span<const DeviceId> devices, const std::vector<bool>& chosen,
                     DType dtype, CopyRoute route) {
  const auto size = static_cast<double>(size_of(dtype));
  double slowest = 0;
  for (std::size_t part = 0; part < plans.size(); ++part) {
    double seconds = 0;
    for (const HaloTransfer& each : plans[part].arrivals) {
      const auto from = static_cast<std::size_t>(each.from);
      if (!chosen[part] && !chosen[from]) continue;
      const auto space = [&](std::size_t of) { return machine.devices[devices[of]].space; };
      seconds += copy_seconds(machine, space(from), space(part),
                              static_cast<double>(each.count) * size, route);
    }
    slowest = std::max(slowest, seconds);
  }
  return slowest;
}

Streaming model_streaming(const Machine& machine, std::span<const PartPlan> plans,
                          std::span<const DeviceId> devices, CgMethod method) {
  std::map<DeviceId, double> needed;
  for (std::size_t part = 0; part < plans.size(); ++part) {
    const PartShape& shape = plans[part].shape;
    if (devices[part] == no_device) continue;
    const std::int64_t x_bytes = shape.rows * static_cast<std::int64_t>(size_of(shape.dtype));
    needed[devices[part]] += static_cast<double>(stored_bytes(plans[part]) +
                                                 work_shape(shape, 1, method).bytes + x_bytes);
  }
  Streaming found;
  for (const auto& [id, bytes] : needed) {
    const Device& device = machine.devices[id];
    const double over = bytes - static_cast<double>(device.memory_bytes);
    if (device.memory_bytes <= 0 || over <= 0) continue;
    found.bytes += over;
    found.seconds = std::max(found.seconds, machine.copy_seconds(host_space, device.space, over));
  }
  return found;
}

std::vector<ProductEstimate> estimate_products(const Machine& machine,
                                               std::span<const PartPlan> plans,
                                               std::span<const DeviceId> devices, bool has_lists) {
  std::vector<ProductEstimate> found;
  for (const Exchange exchange : {Exchange::halo, Exchange::whole})
    for (const CopyRoute route : {CopyRoute::direct, CopyRoute::host}) {
      if (exchange == Exchange::halo && !has_lists) continue;
      found.push_back({exchange, route, model_product(machine, plans, devices, exchange, route)});
      if (found.back().parts.empty()) return {};
    }
  return found;
}

}  // namespace quadriga::sparse
