// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/product_search.h: the two searches behind plan_product().
#pragma once

#include "linalg/product_plan.h"
#include "linalg/product_times.h"

#include <optional>

namespace quadriga::linalg {

/// Nearly equal tiles, as many as tiles of at most `tile` would be, of the group's granules.
std::int64_t even_tile(const DeviceGroup& group, std::int64_t size, std::int64_t tile) noexcept;

/// The best list schedule; none if no operands of tiles that were tried fit the devices together.
std::optional<ProductPlan> list_plan(const ProductTimes& times, const DeviceGroup& group,
                                     const Problem& problem);

/// Shares a plan for one device among a group: its tiles stay as they are.
void share_plan(const ProductTimes& times, const DeviceGroup& group, const Problem& problem,
                ProductPlan& plan);

/// Where not all operands fit: the best plan by which some rows of A's tiles do; none if none
/// does.
std::optional<ProductPlan> stream_plan(const ProductTimes& times, const DeviceGroup& group,
                                       const Problem& problem);

}  // namespace quadriga::linalg
