// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/part_plan.h: a part of a matrix, and what it exchanges with others.
#pragma once

#include <vector>

#include "sparse/exchange.h"
#include "sparse/kernels/part_shape.h"

namespace quadriga::sparse {

/// What tasks on one part need to know beside their operands.
struct PartPlan {
  PartShape shape;
  std::vector<HaloTransfer> arrivals;  ///< By sender.
  std::vector<HaloTransfer> sends;     ///< By receiver, as the part's send_rows.
  /// By arrival, where products are split by columns: the elements in the sender's columns.
  std::vector<PartShape> remainders = {};
};

/// Of the matrix.
inline std::int64_t stored_bytes(const PartPlan& plan) noexcept {
  std::int64_t bytes = plan.shape.bytes;
  for (const PartShape& each : plan.remainders) bytes += each.bytes;
  return bytes;
}

}  // namespace quadriga::sparse
