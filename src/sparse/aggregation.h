// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/aggregation.h: levels by smoothed aggregation.
#pragma once

#include <quadriga/engine.h>
#include <quadriga/sparse_multigrid.h>

#include <functional>
#include <memory>
#include <vector>

#include "sparse/node_matrix.h"

namespace quadriga::sparse {

/// The largest rows of blocks that are inverted for a smoother of nodes of so many rows.
int smoothed_rows(int unknowns) noexcept;

/// How D^-1*A is smoothed on a level.
struct LevelSmoother {
  int inverse_rows = 1;  ///< Of a block of D.
  EigenvalueBounds bounds;
};

/// Levels below a matrix, and smoothers of all but the last one, the matrix's first.
struct MadeLevels {
  struct Level {
    LevelCsr restriction;
    LevelCsr prolongation;
    LevelCsr matrix;
  };
  std::vector<Level> levels;
  std::vector<LevelSmoother> smoothers;
  LevelCsr inverse;  ///< Of the last level, or of its diagonal if it is large.
};

/// Bounds of D^-1*A, where D are the blocks of so many rows on the diagonal.
using EstimateBounds = std::function<EigenvalueBounds(const CsrView& a, int inverse_rows)>;

/// Makes levels of a matrix, and again of one with other values at the same places: aggregates and
/// what prolongs them stay.
class Aggregator {
 public:
  virtual ~Aggregator() = default;
  /// `finest`: how the matrix itself is smoothed.
  /// Errors: invalid_argument if a level's diagonal is singular.
  virtual MadeLevels make(const CsrView& a, const LevelSmoother& finest,
                          const EstimateBounds& estimate) = 0;
};

/// For matrices of this one's size and type, with nodes of so many rows. The engine outlives it.
/// Errors: invalid_argument if nodes don't divide the rows, or there are no vectors.
std::unique_ptr<Aggregator> make_aggregator(Engine& engine, const CsrView& a,
                                            const Aggregation& options, int unknowns);

/// The inverse of a small matrix, as one that has all elements. Rows that depend on those before
/// are left out.
/// Errors: invalid_argument if it isn't square or has more than 2000 rows.
LevelCsr dense_inverse(const CsrView& a);

}  // namespace quadriga::sparse
