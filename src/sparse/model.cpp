// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/model.cpp: bytes by rates.
#include "sparse/model.h"

#include <quadriga/codelet.h>

#include <algorithm>
#include <map>

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

double compute_seconds(const Machine& machine, const Device& device, const PartShape& shape) {
  const auto element = static_cast<double>(size_of(shape.dtype));
  // The matrix, p with its halo, and q.
  const double bytes =
      static_cast<double>(shape.bytes) + static_cast<double>(2 * shape.rows + shape.halo) * element;
  const Cost cost = Cost::of_work(2 * static_cast<double>(shape.elements), bytes);
  return machine.kernel_seconds(device, cost.kernel, cost.order, cost.volume);
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
    ProductModel model{compute_seconds(machine, device, shape), 0};
    const auto arrive = [&](std::size_t from, std::int64_t rows) {
      const auto bytes = static_cast<double>(rows) * static_cast<double>(size_of(shape.dtype));
      const SpaceId space = machine.devices[devices[from]].space;
      model.exchange_seconds += copy_seconds(machine, space, device.space, bytes, route);
    };
    if (exchange == Exchange::whole) {
      for (std::size_t from = 0; from < plans.size(); ++from)
        if (from != part) arrive(from, plans[from].shape.rows);
    } else {
      for (const HaloTransfer& each : plans[part].arrivals)
        arrive(static_cast<std::size_t>(each.from), each.count);
    }
    models.push_back(model);
  }
  return models;
}

Streaming model_streaming(const Machine& machine, std::span<const PartPlan> plans,
                          std::span<const DeviceId> devices, CgMethod method) {
  std::map<DeviceId, double> needed;
  for (std::size_t part = 0; part < plans.size(); ++part) {
    const PartShape& shape = plans[part].shape;
    if (devices[part] == no_device) continue;
    const std::int64_t x_bytes = shape.rows * static_cast<std::int64_t>(size_of(shape.dtype));
    needed[devices[part]] +=
        static_cast<double>(shape.bytes + work_shape(shape, 1, method).bytes + x_bytes);
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
