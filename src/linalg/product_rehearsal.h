// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/product_rehearsal.h: how long a planned product takes on all devices together. Pure.
#pragma once

#include "linalg/home_links.h"
#include "linalg/product_plan.h"
#include "linalg/product_times.h"

#include <limits>

namespace quadriga::linalg {

/// When the last tile of C would be home, if each device does its products of plan.orders one after
/// the other: it issues a few ahead, by turns with the others; whoever issues a product first
/// brings what isn't anywhere yet, others get it from there if that is quicker; a device whose link
/// is idle brings what it needs next; kernels that run at once share a device's speed. If that
/// isn't before the limit: infinity.
double rehearse(const ProductTimes& times, HomeLinks& home_links, const Problem& problem,
                const ProductPlan& plan, double limit = std::numeric_limits<double>::infinity());

}  // namespace quadriga::linalg
