// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/hierarchy.h: levels of a preconditioner, made or given, in parts on an engine.
#pragma once

#include <quadriga/sparse.h>

#include <span>
#include <vector>

#include "sparse/aggregation.h"
#include "sparse/exchange.h"
#include "sparse/levels.h"

namespace quadriga::sparse {

/// How the matrix above all levels is cut.
struct FinestCuts {
  std::span<const std::int64_t> first_rows;  ///< Of each part, and their number.
  std::span<const std::size_t> bytes;        ///< By part: rows of levels go by these.
  RowUnits units;
};

/// Steps of a smoother that leaves what the next level represents to that one.
std::vector<SmoothingStep> smoothing_steps(const EigenvalueBounds& bounds, int degree);

/// Bounds of D^-1*A of a matrix that isn't on the devices yet.
EigenvalueBounds estimate_bounds(Engine& engine, const CsrView& a, int inverse_rows);

/// Errors: invalid_argument if a level's sizes or type don't fit the one above, naming the level.
void check_levels(std::span<const CoarseLevel> levels, std::int64_t rows, DType dtype);

/// The levels from the finest one on, whose matrix the solver has. `smoothers`: of all but the last
/// level, whose `inverse` it is.
std::vector<Level> store_levels(Engine& engine, const FinestCuts& finest,
                                std::span<const CoarseLevel> levels,
                                std::span<const LevelSmoother> smoothers, const CsrView& inverse,
                                int degree);

}  // namespace quadriga::sparse
