// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/level_bodies.h: operands to arrays of the tasks of level_codelets.h, for the
// host and for GPUs.
#pragma once

#include "sparse/kernels/level_codelets.h"
#include "sparse/kernels/part_codelets.h"

namespace quadriga::sparse {

/// On computes: on the host, or by launches on the stream of the arguments.
template <class T, class On>
class LevelBodies {
 public:
  explicit LevelBodies(const LevelPart& part) : part_(part) {}

  /// s = r on the finest level, and the first step; sends d to the buffers from `operand` on.
  static void start(const Arguments& a, const PartPlan& plan, const PartVectors<T>& v,
                    const LevelParams& params, const ColumnState* states, std::size_t operand) {
    const PartArrays<T> matrix(plan.shape, a.operands[0].data);
    On::copy(a, v.s, v.r, plan.shape.rows * v.columns);
    On::relax(a, matrix, v, params.relaxation, states);
    send(a, plan, matrix, v.d, v.columns, operand);
  }

  void relax(const Arguments& a, bool sends) const {
    const auto [params, states] = begin(a, 1);
    const PartVectors<T> v(*part_.work, a.operands[2].data);
    if (!On::runs(states, v.columns)) return;
    relax_with(a, v, params, states, 3);
    if (sends)
      send(a, *part_.matrix, {part_.matrix->shape, a.operands[0].data}, v.d, v.columns,
           3 + part_.matrix->arrivals.size());
  }

  void finish(const Arguments& a) const {
    const auto [params, states] = begin(a, 1);
    const PartVectors<T> v(*part_.work, a.operands[2].data);
    if (!On::runs(states, v.columns)) return;
    relax_with(a, v, params, states, 4);
    const PartArrays<T> matrix(part_.matrix->shape, a.operands[0].data);
    On::sum_products(a, matrix, v, a.operands[3].as<double>(), states);
    send(a, *part_.matrix, matrix, v.z, v.columns, 4 + part_.matrix->arrivals.size());
  }

  void to_coarser(const Arguments& a) const {
    const auto [params, states] = begin(a, 2);
    PartVectors<T> v(*part_.work, a.operands[3].data);
    const PartVectors<T> next(*part_.next_work, a.operands[4].data);
    if (!On::runs(states, v.columns)) return;
    take_halo(a, *part_.restriction, v.s, v.columns, 5);
    v.p = v.s;
    v.q = next.s;
    On::multiply(a, {part_.restriction->shape, a.operands[0].data}, v, states);
    const PartArrays<T> matrix(part_.next->shape, a.operands[1].data);
    if (!part_.next_is_coarsest) On::relax(a, matrix, next, params.relaxation, states);
    send(a, *part_.next, matrix, part_.next_is_coarsest ? next.s : next.d, v.columns,
         5 + part_.restriction->arrivals.size());
  }

  void to_finer(const Arguments& a) const {
    const auto [params, states] = begin(a, 2);
    const PartVectors<T> next(*part_.next_work, a.operands[3].data);
    PartVectors<T> v(*part_.work, a.operands[4].data);
    if (!On::runs(states, v.columns)) return;
    take_halo(a, *part_.prolongation, next.z, v.columns, 5);
    v.p = next.z;
    v.q = v.d;
    On::multiply(a, {part_.prolongation->shape, a.operands[0].data}, v, states);
    const PartArrays<T> matrix(part_.matrix->shape, a.operands[1].data);
    On::correct(a, part_.matrix->shape.rows, v, states);
    send(a, *part_.matrix, matrix, v.d, v.columns, 5 + part_.prolongation->arrivals.size());
  }

  void solve(const Arguments& a) const {
    const auto [params, states] = begin(a, 1);
    PartVectors<T> v(*part_.work, a.operands[2].data);
    if (!On::runs(states, v.columns)) return;
    take_halo(a, *part_.matrix, v.s, v.columns, 3);
    v.p = v.s;
    v.q = v.z;
    On::multiply(a, {part_.matrix->shape, a.operands[0].data}, v, states);
  }

  void send_residual(const Arguments& a) const {
    const PartVectors<T> v(*part_.work, a.operands[1].data);
    send(a, *part_.restriction, {part_.restriction->shape, a.operands[0].data}, v.s, v.columns, 2);
  }

  void send_solution(const Arguments& a) const {
    const PartVectors<T> v(*part_.next_work, a.operands[1].data);
    send(a, *part_.prolongation, {part_.prolongation->shape, a.operands[0].data}, v.z, v.columns,
         2);
  }

 private:
  struct Begin {
    LevelParams params;
    const ColumnState* states;
  };
  static Begin begin(const Arguments& a, std::size_t state) {
    const auto params = a.param<LevelParams>();
    return {params, params.always ? nullptr : a.operands[state].as<const ColumnState>()};
  }

  void relax_with(const Arguments& a, PartVectors<T> v, const LevelParams& params,
                  const ColumnState* states, std::size_t operand) const {
    const PartArrays<T> matrix(part_.matrix->shape, a.operands[0].data);
    if (params.relaxation.subtracts) {
      take_halo(a, *part_.matrix, v.d, v.columns, operand);
      v.p = v.d;
      On::multiply(a, matrix, v, states);
    }
    On::relax(a, matrix, v, params.relaxation, states);
  }

  static void take_halo(const Arguments& a, const PartPlan& plan, T* vector, std::int64_t columns,
                        std::size_t operand) {
    for (const HaloTransfer& each : plan.arrivals)
      On::copy(a, vector + (plan.shape.own_columns + each.first) * columns,
               a.operands[operand++].template as<const T>(), each.count * columns);
  }

  static void send(const Arguments& a, const PartPlan& plan, const PartArrays<T>& matrix,
                   const T* vector, std::int64_t columns, std::size_t operand) {
    std::int64_t first = 0;
    for (const HaloTransfer& each : plan.sends) {
      On::gather(a, matrix, vector, columns, first, each.count,
                 a.operands[operand++].template as<T>());
      first += each.count;
    }
  }

  LevelPart part_;
};

/// Gives the codelets their variants; `variant` is a member of Codelet.
template <class T, class On>
void set_variants(LevelCodelets& codelets, const LevelPart& part, Kernel Codelet::*variant) {
  using Args = const Arguments&;
  const LevelBodies<T, On> bodies(part);
  codelets.relax.*variant = [=](Args a) { bodies.relax(a, true); };
  codelets.settle.*variant = [=](Args a) { bodies.relax(a, false); };
  codelets.finish.*variant = [=](Args a) { bodies.finish(a); };
  codelets.solve.*variant = [=](Args a) { bodies.solve(a); };
  if (!part.restriction) return;
  codelets.to_coarser.*variant = [=](Args a) { bodies.to_coarser(a); };
  codelets.to_finer.*variant = [=](Args a) { bodies.to_finer(a); };
  codelets.send_residual.*variant = [=](Args a) { bodies.send_residual(a); };
  codelets.send_solution.*variant = [=](Args a) { bodies.send_solution(a); };
}

}  // namespace quadriga::sparse
