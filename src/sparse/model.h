// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/model.h: what a product should take, before it runs. Pure.
//
// Source: Hahnfeld, Cramer, Klemm, Terboven, Mueller: A Pattern for Overlapping Communication and
// Computation with OpenMP Target Directives, IWOMP 2017.
#pragma once

#include <quadriga/machine.h>
#include <quadriga/sparse.h>

#include <span>
#include <vector>

#include "sparse/kernels/part_codelets.h"

namespace quadriga::sparse {

/// A product of each part: its bytes at the rate of its device's memory or its operations at that
/// of its cores, whichever is longer, and what it needs of others over the links of the machine, by
/// way of the host where no route joins two devices. `exchange` is halo, or whole. Empty if the
/// machine's table has no rates for a device.
std::vector<ProductModel> model_product(const Machine& machine, std::span<const PartPlan> plans,
                                        std::span<const DeviceId> devices, Exchange exchange,
                                        CopyRoute route);

/// All ways; halo lists only where `plans` have them.
std::vector<ProductEstimate> estimate_products(const Machine& machine,
                                               std::span<const PartPlan> plans,
                                               std::span<const DeviceId> devices, bool has_lists);

/// Seconds of the part that waits longest for what it exchanges with chosen parts, or they with it,
/// over otherwise idle links.
double exchange_with(const Machine& machine, std::span<const PartPlan> plans,
                     std::span<const DeviceId> devices, const std::vector<bool>& chosen,
                     DType dtype, CopyRoute route);

/// What doesn't fit the devices and passes their links in each iteration.
struct Streaming {
  double bytes = 0;    ///< Of all devices.
  double seconds = 0;  ///< Of the device that takes longest, over otherwise idle links.
};

Streaming model_streaming(const Machine& machine, std::span<const PartPlan> plans,
                          std::span<const DeviceId> devices, CgMethod method);

}  // namespace quadriga::sparse
