// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/levels.h: a preconditioner of several steps: its levels and what is done on them.
#pragma once

#include <quadriga/sparse.h>
#include <quadriga/sparse_multigrid.h>

#include <memory>
#include <optional>
#include <vector>

#include "sparse/kernels/part_codelets.h"
#include "sparse/level_matrix.h"

namespace quadriga::sparse {

struct Level {
  std::unique_ptr<LevelMatrix> matrix;       ///< Null: the solver's. On the coarsest its inverse.
  std::unique_ptr<LevelMatrix> restriction;  ///< To the next level; null: there is none.
  std::unique_ptr<LevelMatrix> prolongation;
  std::vector<SmoothingStep> steps;  ///< None on the coarsest.
};

class Levels {
 public:
  Levels(std::vector<Level> levels, std::span<const PartPlan> finest);
  Levels(const Levels&) = delete;
  Levels& operator=(const Levels&) = delete;

  /// Of a single level. No task may be under way.
  void set_steps(std::vector<SmoothingStep> steps);

  std::size_t count() const noexcept { return levels_.size(); }
  const Level& operator[](std::size_t level) const { return levels_[level]; }
  const CyclePlan& plan() const noexcept { return plan_; }

 private:
  void order();

  std::vector<Level> levels_;
  CyclePlan plan_;
};

}  // namespace quadriga::sparse
