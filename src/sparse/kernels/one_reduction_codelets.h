// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/one_reduction_codelets.h: the codelets of conjugate gradients with one
// reduction an iteration (one_reduction.h). In an iteration of single-reduction ones
//
//   step         all recurrences; u = M*r, also for the neighbours; sums of r^H*u and ||r||^2
//   product      w = A*u; sums of u^H*w
//   set_scalars  beta, whether the column goes on, and alpha
//
// Pipelined ones form all sums in the step, so that their scalars don't wait for the product, nor
// the product for them: of the states it reads those that the step had.
#pragma once

#include <quadriga/codelet.h>

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "sparse/kernels/one_reduction.h"
#include "sparse/kernels/part_plan.h"

namespace quadriga::sparse {

class SolveCodelets;

/// to = from, or M*from.
struct VectorMove {
  PartVector from = PartVector::residual;
  PartVector to = PartVector::in;
  bool scaled = false;
};

/// Those of one part.
struct OneReductionPart {
  Codelet reload;  ///< {matrix, x, work update, buffers write}: the product's input is x.
  /// {matrix, state, work update, buffers write}. VectorMove, and its result for the neighbours.
  Codelet enter;
  Codelet move;     ///< {matrix, work update}. VectorMove.
  Codelet step;     ///< {matrix, state, x update, work update, sums write, buffers write}.
  Codelet product;  ///< {matrix, work update, sums write, buffers}.
  Codelet inner;    ///< {matrix, work update, sums write}: of inner blocks.
  Codelet border;   ///< {matrix, work update, sums update, buffers}: of the others.
  Codelet sum;      ///< {matrix, work, sums write}: of u^H*w.
  /// As those of part_codelets.h: {its matrix, work update, sums update, its buffer}, or without.
  std::vector<Codelet> remainders;
  std::vector<Codelet> resting;
};

/// All of them for so many columns. They outlive their tasks; plans and works outlive them.
class OneReductionCodelets {
 public:
  OneReductionCodelets(const SolveCodelets& codelets, std::span<const PartPlan> plans,
                       std::int64_t columns, CgMethod method);
  OneReductionCodelets(const OneReductionCodelets&) = delete;
  OneReductionCodelets& operator=(const OneReductionCodelets&) = delete;

  CgMethod method() const noexcept { return method_; }
  const OneReductionPart& part(std::size_t index) const { return parts_[index]; }
  /// {state update, sums of u^H*w of each part}: alpha.
  const Codelet& set_step() const noexcept { return set_step_; }
  /// {state update, history update, sums of each part's step}: beta, and whether it goes on.
  const Codelet& end_step() const noexcept { return end_step_; }
  /// {state update, history update, sums of each part's step, single-reduction then of each part's
  /// product}: both.
  const Codelet& set_scalars() const noexcept { return set_scalars_; }
  /// As SolveCodelets::iterations(), for a matrix in one part.
  const Codelet& iterations() const noexcept { return iterations_; }
  /// As SolveCodelets::joint_iterations().
  const Codelet& joint_iterations(std::size_t index) const { return joint_iterations_.at(index); }

 private:
  CgMethod method_;
  std::deque<OneReductionPart> parts_;
  Codelet set_step_;
  Codelet end_step_;
  Codelet set_scalars_;
  Codelet iterations_;
  std::vector<Codelet> joint_iterations_;
};

/// Gives a part's codelets their CUDA variants, in builds that have them.
void add_cuda(OneReductionPart& part, const PartPlan& plan, const WorkShape& work);

}  // namespace quadriga::sparse
