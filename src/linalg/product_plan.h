// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/product_plan.h: how a product is cut into tiles, and whether its order is a list
// schedule.
#pragma once

#include "linalg/device_group.h"
#include "linalg/order.h"
#include "linalg/tiling.h"

#include <quadriga/linalg.h>

#include <vector>

namespace quadriga::linalg {

/// Tiles of A lie at (rows, sum), of C at (rows, cols), of B at (sum_of_b, cols): one of B serves
/// several columns of A.
struct ProductPlan {
  Tiling rows;
  Tiling cols;
  Tiling sum;
  Tiling sum_of_b;
  /// The products of each device, where each holds all that it needs: a list schedule.
  std::vector<std::vector<Product>> orders;
  double seconds = 0;  ///< That it takes.
  /// Otherwise, if positive: each device holds so many rows of tiles of A at a time, and so many
  /// columns advance together at the start.
  std::int64_t height = 0;
  std::int64_t at_start = 0;
};

/// Options::tile in all directions if it is given. Else, on devices whose products' times the
/// machine's table tells, the tiles of the best schedule, if its operands fit: tall ones, since
/// copies of short runs are slow, and small ones where a device begins and ends. If they don't fit,
/// rows of A that stay while B and C stream past.
///
/// For operands that all lie in one device's memory, the tasks that take least time there by the
/// rates: one on the whole matrices, unless smaller ones are faster.
ProductPlan plan_product(const Engine& engine, const DeviceGroup& group, const Problem& problem,
                         const Options& options);

}  // namespace quadriga::linalg
