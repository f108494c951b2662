// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/level_codelets.h: the tasks of a preconditioner that is more than blocks of
// rows: steps of smoothers, and ways between levels.
//
// On a level z approximates the solution for a right-hand side, s is what is left of that, and d is
// what was added to z last, so that the next step begins with s -= A*d. A correction from the
// coarser level is such a d, too. A cycle is a list of steps; each is one task for every part, and
// behind some of them elements of s or z go to the parts that a restriction or prolongation needs
// them in. All columns are computed while any of them runs.
#pragma once

#include <quadriga/codelet.h>
#include <quadriga/sparse_multigrid.h>

#include <deque>
#include <span>
#include <vector>

#include "sparse/kernels/part_kernels.h"
#include "sparse/kernels/part_plan.h"

namespace quadriga::sparse {

/// The matrices of one level, by part.
struct LevelPlans {
  std::span<const PartPlan> matrix;       ///< On the coarsest of several levels its inverse.
  std::span<const PartPlan> restriction;  ///< To the next level; empty: there is none.
  std::span<const PartPlan> prolongation;
};

struct LevelParams {
  Relaxation relaxation;
  bool always = false;  ///< Though the states may say that no column runs.
};

/// Those of one part of a level. `matrix` is the level's, as far as not said.
struct LevelCodelets {
  /// {matrix, state, work update, buffers, buffers write}. LevelParams. Also sends d.
  Codelet relax;
  /// {matrix, state, work update, buffers}. LevelParams.
  Codelet settle;
  /// {matrix, state, work update, sums update, buffers, buffers write}. LevelParams. Of the finest
  /// level: also sums of r^H*z; sends z.
  Codelet finish;
  /// {restriction, the next level's matrix, state, work update, the next level's work write,
  /// buffers, buffers write}. LevelParams. s of the next level, and its first step, which is sent;
  /// on the coarsest level s is.
  Codelet to_coarser;
  /// {prolongation, matrix, state, the next level's work update, work update, buffers, buffers
  /// write}. LevelParams. d from the next level's z; sends d.
  Codelet to_finer;
  /// {matrix, state, work update, buffers}. LevelParams. z from s by the inverse.
  Codelet solve;
  Codelet send_residual;  ///< {restriction, work, buffers write}: of s.
  Codelet send_solution;  ///< {prolongation, the next level's work, buffers write}: of z there.
};

/// What the codelets of one part need to know.
struct LevelPart {
  const PartPlan* matrix = nullptr;
  const PartPlan* restriction = nullptr;
  const PartPlan* prolongation = nullptr;
  const PartPlan* next = nullptr;  ///< The next level's matrix.
  const WorkShape* work = nullptr;
  const WorkShape* next_work = nullptr;
  bool next_is_coarsest = false;
};

/// What is done on a level, once for every part.
enum class CycleStep : std::uint8_t { relax, settle, finish, to_coarser, to_finer, solve };

struct CycleTask {
  CycleStep step = CycleStep::relax;
  std::size_t level = 0;
  Relaxation relaxation = {};
};

/// From z = 0 on the finest level to z = M*r; its first step has been made.
std::vector<CycleTask> cycle_of(std::span<const std::vector<SmoothingStep>> steps);

/// A cycle as tasks get it.
struct CyclePlan {
  std::vector<LevelPlans> levels;
  std::vector<CycleTask> tasks;
  Relaxation first;             ///< The first step on the finest level.
  std::int64_t generation = 0;  ///< Changes with the tasks.
};

/// The first step of a smoother.
Relaxation first_of(const std::vector<SmoothingStep>& steps) noexcept;

/// All of them for so many columns. They outlive their tasks, and the plans outlive them.
class CycleCodelets {
 public:
  CycleCodelets(std::vector<LevelPlans> levels, std::int64_t columns);
  CycleCodelets(const CycleCodelets&) = delete;
  CycleCodelets& operator=(const CycleCodelets&) = delete;

  std::size_t levels() const noexcept { return plans_.size(); }
  const LevelPlans& plans(std::size_t level) const { return plans_[level]; }
  const LevelCodelets& of(std::size_t level, std::size_t part) const {
    return codelets_[level][part];
  }
  const WorkShape& work(std::size_t level, std::size_t part) const { return works_[level][part]; }

 private:
  std::vector<LevelPlans> plans_;
  std::deque<std::deque<WorkShape>> works_;
  std::deque<std::deque<LevelCodelets>> codelets_;
};

/// Gives the codelets their CUDA variants, in builds that have them.
void add_cuda(LevelCodelets& codelets, const LevelPart& part);

}  // namespace quadriga::sparse
