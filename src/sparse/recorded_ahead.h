// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/recorded_ahead.h: iterations are recorded before the first solve.
#pragma once

#include "sparse/content.h"

namespace quadriga::sparse {

/// Where iterations are recorded: runs those of a right side of zeros, which has ended before they
/// begin, in batches of each length that a solve tries on its way, as often as a recording takes.
/// Then the matrix and a solve's data are on the devices, in the places where the next solve of one
/// column uses them. Where that fails nothing has changed: the first solve says why.
/// Returns the seconds that it took; 0 if nothing is recorded.
double record_ahead(const SolverContent& content);

}  // namespace quadriga::sparse
