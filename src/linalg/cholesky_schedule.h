// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/cholesky_schedule.h: how long a Cholesky factorization by given tiles takes. Pure.
#pragma once

#include "linalg/order.h"
#include "linalg/tiling.h"

#include <cstddef>
#include <limits>
#include <vector>

namespace quadriga::linalg {

/// Seconds of a tile's copies to and from a device, while all other devices do so too.
struct CholeskyLinks {
  double load = 0;     ///< From home,
  double store = 0;    ///< to it,
  double receive = 0;  ///< and from other devices.
};

/// What a factorization's time follows from; all seconds are of whole tiles.
struct CholeskyTimes {
  CholeskyShape shape;
  Tiling tiling;                                ///< Of rows and columns.
  std::vector<CholeskyLinks> links;             ///< Of each device.
  std::vector<std::ptrdiff_t> device_of_place;  ///< Empty: each place is a device.
  std::vector<double> slower;  ///< Seconds on each device over those above; empty: equal.
  std::int64_t streams = 1;    ///< Kernels that a device runs at once, sharing its speed.
  double task_seconds = 0;  ///< Of a launch: in each kernel's time, and between two tasks' starts.
};

/// All devices' work, or all bytes over the links, whichever is more: no schedule takes less.
double cholesky_bound(const CholeskyTimes& times);

/// When the last tile would be home, by a list schedule of the steps of cholesky_order(): each
/// device begins of those that are ready the one of highest priority, else the one submitted first;
/// tiles come in the order of their first use. Where the matrix doesn't fit the devices together,
/// it takes as long as the copies of all blocks do, at least. If that isn't before the limit:
/// infinity.
double cholesky_seconds(const CholeskyTimes& times,
                        double limit = std::numeric_limits<double>::infinity());

}  // namespace quadriga::linalg
