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
};

}  // namespace quadriga::sparse
