// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/product_search.h: the two searches behind plan_product().
#pragma once

#include "linalg/product_plan.h"
#include "linalg/product_times.h"

#include <algorithm>
#include <vector>

namespace quadriga::linalg {

/// Nearly equal tiles, as many as tiles of at most `tile` would be, of the group's granules.
std::int64_t even_tile(const DeviceGroup& group, std::int64_t size, std::int64_t tile) noexcept;

/// List schedules, the best first, then those that seem to take less than `near` times its seconds;
/// none if no operands of tiles that were tried fit the devices together.
std::vector<ProductPlan> list_plans(const ProductTimes& times, const DeviceGroup& group,
                                    const Problem& problem, double near);

/// Those within `near` of the best, the best first; of equal ones the first found.
inline std::vector<ProductPlan> nearest(std::vector<ProductPlan> plans, double near) {
  std::ranges::stable_sort(plans, {}, &ProductPlan::seconds);
  while (plans.size() > 1 && plans.back().seconds > near * plans.front().seconds) plans.pop_back();
  return plans;
}

/// Shares a plan for one device among a group: its tiles stay as they are.
void share_plan(const ProductTimes& times, const DeviceGroup& group, const Problem& problem,
                ProductPlan& plan);

/// Where not all operands fit: the same of plans by which some rows of A's tiles do.
std::vector<ProductPlan> stream_plans(const ProductTimes& times, const DeviceGroup& group,
                                      const Problem& problem, double near);

}  // namespace quadriga::linalg
