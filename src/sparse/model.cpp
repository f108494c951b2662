// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/model.cpp: bytes by rates.
#include "sparse/model.h"

#include <quadriga/codelet.h>

namespace quadriga::sparse {
namespace {

/// Of a copy between two devices' memories, or by way of the host.
double copy_seconds(const Machine& machine, SpaceId from, SpaceId to, double bytes) {
  if (from == to) return 0;
  if (machine.route(from, to)) return machine.copy_seconds(from, to, bytes);
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
                                        std::span<const DeviceId> devices) {
  std::vector<ProductModel> models;
  for (std::size_t part = 0; part < plans.size(); ++part) {
    if (devices[part] == no_device) return {};
    const Device& device = machine.devices[devices[part]];
    if (!machine.has_kernel(device, Cost::of_work(0, 0).kernel)) return {};
    const PartShape& shape = plans[part].shape;
    ProductModel model{compute_seconds(machine, device, shape), 0};
    for (const HaloTransfer& each : plans[part].arrivals) {
      const Device& sender = machine.devices[devices[static_cast<std::size_t>(each.from)]];
      const auto bytes =
          static_cast<double>(each.count) * static_cast<double>(size_of(shape.dtype));
      model.exchange_seconds += copy_seconds(machine, sender.space, device.space, bytes);
    }
    models.push_back(model);
  }
  return models;
}

}  // namespace quadriga::sparse
