// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/measure.h: how long products take by the engine's clock.
#pragma once

#include "sparse/content.h"

namespace quadriga::sparse {

/// Seconds of one of `count` products, one after the other: what parts send to each other is sent
/// anew for each, and nothing goes home. The first one, which brings the matrix, isn't counted.
double measure_product(const SolverContent& content, std::int64_t count, std::int64_t columns,
                       ProductMode mode);

}  // namespace quadriga::sparse
