// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/level_maker.h: levels of a solver's preconditioner, made again for new values.
#pragma once

#include <quadriga/sparse.h>

#include <memory>
#include <span>
#include <vector>

#include "sparse/aggregation.h"
#include "sparse/exchange.h"
#include "sparse/levels.h"

namespace quadriga::sparse {

class SolverContent;

/// What a solver's M is made of.
struct LevelPlan {
  Precondition precondition = Precondition::none;
  int degree = 0;    ///< Of the polynomials.
  int unknowns = 1;  ///< Rows of a node.
  RowUnits units;
};

class LevelMaker {
 public:
  /// The solver's matrix is on the devices, and outlives this.
  LevelMaker(const SolverContent& content, const LevelPlan& plan);

  /// Where M is the cycle of `options`, by the values that are on the devices now.
  std::vector<Level> make(const CsrView& a, const SolverOptions& options);
  /// By new values. Levels that were given stay: then there are none to return.
  std::vector<Level> make_again(const CsrView& a);

  const EigenvalueBounds& bounds() const noexcept { return bounds_; }
  const std::vector<LevelReport>& reports() const noexcept { return reports_; }

 private:
  std::vector<Level> of_aggregates(const CsrView& a);
  std::vector<Level> of_polynomial() const;
  std::vector<Level> of_given(const CsrView& a, std::span<const CoarseLevel> levels);
  std::vector<Level> store(const CsrView& a, std::span<const CoarseLevel> levels,
                           std::span<const LevelSmoother> smoothers, const CsrView& inverse);

  const SolverContent& content_;
  LevelPlan plan_;
  std::unique_ptr<Aggregator> aggregator_;
  EigenvalueBounds bounds_;
  std::vector<LevelReport> reports_;
};

}  // namespace quadriga::sparse
