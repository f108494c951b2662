// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/part_codelets.h: the kernels of a part, and those of the scalars, as codelets.
//
// A part's operands, always in this order, as far as a codelet has them:
//   matrix, state, the caller's vector, work, sums, then one buffer a transfer.
// `work` holds p, q and r; only tasks of this part touch it. What goes to another part is written
// to the buffer of that transfer by the task that computed it, so that it travels while the scalars
// are formed. An iteration is a product and a step for each part, and two tasks for the scalars:
//
//   product   p = M*r + beta*p, also for the halo from its neighbours' M*r; q = A*p; sums of p^H*q
//   set_step  alpha = rho / p^H*A*p
//   step      x += alpha*p; r -= alpha*q; M*r for the neighbours; sums of r^H*M*r and ||r||^2
//   set_direction  beta, and whether the column has ended
//
// Where M is several tasks (level_codelets.h) a step ends with the first of them, and the last one
// forms r^H*M*r and sends what the product needs.
//
// The product may be two tasks: that of the inner blocks doesn't wait for the halo. Where it is
// split by columns, own columns of all rows take the place of inner blocks, and a remainder for
// each arrival adds the sender's columns, one after the other in the order of parts.
#pragma once

#include <quadriga/codelet.h>

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "sparse/kernels/level_codelets.h"
#include "sparse/kernels/one_reduction_codelets.h"
#include "sparse/kernels/part_plan.h"
#include "sparse/kernels/scalars.h"

namespace quadriga::sparse {

struct ProductParams {
  bool turns = true;  ///< Else q = A*p as it is, and the halo is what has arrived.
};

/// Tolerances of a solve, at the start and whenever residuals are computed anew.
struct RestartParams {
  Tolerances tolerances;
  bool is_first = true;          ///< Nothing of the states counts, except:
  bool keeps_direction = false;  ///< The next direction has a share of the last one.
  bool replaces = false;         ///< As replace() of one_reduction_scalars.h.
};

struct ResidualParams {
  bool has_product = true;       ///< Else r = b.
  bool keeps_direction = false;  ///< p is as it was; else without a product nothing is.
  Relaxation first = {};         ///< Of M, where that is several tasks.
};

/// Bytes of such a history.
constexpr std::int64_t history_bytes(std::int64_t columns) noexcept {
  return columns * history_length * static_cast<std::int64_t>(sizeof(IterationRecord));
}

/// Those of one part.
struct PartCodelets {
  Codelet load;      ///< {matrix, x, work write, buffers write}: p = x.
  Codelet product;   ///< {matrix, state, work update, sums write, buffers}. ProductParams.
  Codelet inner;     ///< {matrix, state, work update, sums write}: of inner blocks. The same.
  Codelet alone;     ///< {matrix, state, work update, sums write}: of all, with the halo as it was.
  Codelet border;    ///< {matrix, state, work update, sums update, buffers}: of the others.
  Codelet begin;     ///< {matrix, b, work write, sums write, buffers write}. ResidualParams.
  Codelet residual;  ///< {matrix, b, work update, sums write, buffers write}. ResidualParams.
  Codelet step;      ///< {matrix, state, x update, work update, sums write, buffers write}.
                     ///< LevelParams, where M is several tasks.
  Codelet apply;     ///< {matrix, y write, work update, buffers}: y = A*p as it is.
  /// By arrival, where products are split by columns. The last one forms the sums.
  std::vector<Codelet> remainders;  ///< {its matrix, state, work update, sums update, its buffer}.
                                    ///< ProductParams, as the next one.
  std::vector<Codelet> resting;     ///< The same without a buffer: the halo is as it was.
  std::vector<Codelet> additions;   ///< {its matrix, y update, work update}: of apply.
};

/// All codelets of solves with so many columns. They outlive their tasks, and the plans outlive
/// them.
class SolveCodelets {
 public:
  /// Without a cycle M is blocks of rows. A cycle outlives the codelets.
  /// With one, the method is classic.
  SolveCodelets(std::span<const PartPlan> plans, std::int64_t columns, const CyclePlan* cycle,
                CgMethod method = CgMethod::classic);
  SolveCodelets(const SolveCodelets&) = delete;
  SolveCodelets& operator=(const SolveCodelets&) = delete;

  const PartCodelets& part(std::size_t index) const { return parts_[index]; }
  const WorkShape& work(std::size_t index) const {
    return cycle_ ? cycle_->work(0, index) : works_[index];
  }
  /// Of M, where that is several tasks; else null.
  const CycleCodelets* cycle() const noexcept { return cycle_.get(); }
  /// Of methods other than classic; else null.
  const OneReductionCodelets* one_reduction() const noexcept { return one_reduction_.get(); }
  /// {state update, sums of each part}. RestartParams.
  const Codelet& restart() const noexcept { return restart_; }
  /// {state update, sums of each part}.
  const Codelet& set_step() const noexcept { return set_step_; }
  /// {state update, history update, sums of each part}.
  const Codelet& set_direction() const noexcept { return set_direction_; }
  /// {state, history, snapshot write}: one after the other.
  const Codelet& snapshot() const noexcept { return snapshot_; }
  /// {from, to write}: a copy on the host.
  const Codelet& pass() const noexcept { return pass_; }
  /// {b, x}: nothing; the device has them then.
  const Codelet& bring() const noexcept { return bring_; }
  /// Several iterations of a matrix in one part: iterations.h.
  const Codelet& iterations() const noexcept { return iterations_; }
  /// {from, to write}: a copy on a device.
  const Codelet& replicate() const noexcept { return replicate_; }
  /// A part's share of several iterations of all parts: joint_iterations.h. Only where M is blocks
  /// of rows.
  const Codelet& joint_iterations(std::size_t index) const { return joint_iterations_.at(index); }

 private:
  std::deque<PartCodelets> parts_;
  std::deque<WorkShape> works_;
  std::unique_ptr<const CycleCodelets> cycle_;
  std::vector<std::int64_t> blocks_;
  Codelet restart_;
  Codelet set_step_;
  Codelet set_direction_;
  Codelet snapshot_;
  Codelet pass_;
  Codelet bring_;
  Codelet iterations_;
  Codelet replicate_;
  std::vector<Codelet> joint_iterations_;
  std::unique_ptr<const OneReductionCodelets> one_reduction_;
};

}  // namespace quadriga::sparse
