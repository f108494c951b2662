// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/product_plan.h: how a product is cut into tiles, and whether its order is a list
// schedule.
#pragma once

#include "linalg/order.h"
#include "linalg/team.h"

#include <quadriga/linalg.h>

namespace quadriga::linalg {

/// Tiles of A are rows x inner, of C rows x cols; one of B has cols columns and `steps` times
/// `inner` rows.
struct ProductPlan {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t inner = 0;
  std::int64_t steps = 1;
  /// Each device holds all that it needs, and `times` says how long products and copies take.
  bool listed = false;
  ListShape times;
  /// Otherwise, if positive: each device holds a row of tiles of A; so many columns advance
  /// together where rows change, and at the start.
  std::int64_t together = 0;
  std::int64_t at_start = 0;
  double seconds = 0;  ///< Of a list schedule.
};

/// Options::tile in all directions if it is given. Else, on devices whose products are fast, the
/// tiles of the best list schedule by the machine's rates, if its operands fit: tall ones, since
/// copies of short runs are slow while products run. If they don't fit, rows of tall tiles of A
/// that stay while B and C stream past, or squares, by which are done first.
///
/// For operands that all lie in one device's memory, the tasks that take least time there by the
/// rates: one on the whole matrices, unless smaller ones are faster.
ProductPlan plan_product(const Engine& engine, const Team& team, const Problem& problem,
                         const Options& options);

}  // namespace quadriga::linalg
