// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/one_reduction_bodies.h: operands to arrays of the tasks of
// one_reduction_codelets.h, for the host and for GPUs.
#pragma once

#include "sparse/kernels/one_reduction_codelets.h"

namespace quadriga::sparse {

/// On computes: on the host, or by launches on the stream of the arguments.
template <class T, class On>
class OneReductionBodies {
 public:
  OneReductionBodies(const PartPlan& plan, const WorkShape& work) : plan_(&plan), work_(&work) {}

  void reload(const Arguments& a) const {
    const T* const x = a.operands[1].template as<const T>();
    const Vectors of(*work_, a.operands[2].data);
    On::copy(a, of.v.p, x, plan_->shape.rows * of.v.columns);
    send(a, x, 3);
  }

  void enter(const Arguments& a) const {
    const Vectors of(*work_, a.operands[2].data);
    move_of(a, of);
    On::copy(a, of.more.states, a.operands[1].template as<const ColumnState>(), of.v.columns);
    send(a, vector_of(of.v, of.more, a.param<VectorMove>().to), 3);
  }

  void move(const Arguments& a) const { move_of(a, Vectors(*work_, a.operands[1].data)); }

  void step(const Arguments& a) const {
    const auto* const states = a.operands[1].template as<const ColumnState>();
    const Vectors of(*work_, a.operands[3].data);
    On::copy(a, of.more.states, states, of.v.columns);
    if (!On::runs(states, of.v.columns)) return;
    On::step(a, arrays(a), of.v, of.more, a.operands[2].template as<T>(),
             a.operands[4].template as<double>());
    send(a, of.v.p, 5);
  }

  void product(const Arguments& a, BlockRange range, bool has_halo) const {
    const Vectors of(*work_, a.operands[1].data);
    if (!On::runs(of.more.states, of.v.columns)) return;
    if (has_halo) take_halo(a, of.v);
    On::multiply(a, arrays(a), range, of.v, of.more.states, a.operands[2].template as<double>());
  }

  /// Adds what the columns of one arrival contribute.
  void remainder(const Arguments& a, std::size_t index, bool arrives) const {
    const Vectors of(*work_, a.operands[1].data);
    if (!On::runs(of.more.states, of.v.columns)) return;
    if (arrives) take_arrival(a, plan_->arrivals[index], of.v, 3);
    const PartShape& shape = plan_->remainders[index];
    const PartArrays<T> matrix(shape, a.operands[0].data);
    PartVectors<T> apart = of.v;
    apart.q = of.v.partial;
    On::multiply(a, matrix, {0, shape.blocks}, apart, of.more.states, nullptr);
    const bool is_last = index + 1 == plan_->remainders.size();
    On::add_partial(a, matrix, of.v, of.more.states,
                    is_last ? a.operands[2].template as<double>() : nullptr);
  }

  void sum(const Arguments& a) const {
    const Vectors of(*work_, a.operands[1].data);
    On::sum(a, arrays(a), of.v, of.more, a.operands[2].template as<double>());
  }

 private:
  struct Vectors {
    Vectors(const WorkShape& work, void* tile) : v(work, tile), more(work, tile) {}
    PartVectors<T> v;
    Recurrences<T> more;
  };

  PartArrays<T> arrays(const Arguments& a) const { return {plan_->shape, a.operands[0].data}; }

  void move_of(const Arguments& a, const Vectors& of) const {
    const auto move = a.param<VectorMove>();
    On::copy_rows(a, arrays(a), vector_of(of.v, of.more, move.from), of.v.columns, move.scaled,
                  vector_of(of.v, of.more, move.to));
  }

  /// To the buffers, which are the operands from `operand` on.
  void send(const Arguments& a, const T* vector, std::size_t operand) const {
    std::int64_t first = 0;
    for (const HaloTransfer& each : plan_->sends) {
      On::gather(a, arrays(a), vector, work_->columns, first, each.count,
                 a.operands[operand++].template as<T>());
      first += each.count;
    }
  }

  void take_halo(const Arguments& a, const PartVectors<T>& v) const {
    std::size_t operand = 3;
    for (const HaloTransfer& each : plan_->arrivals) take_arrival(a, each, v, operand++);
  }
  void take_arrival(const Arguments& a, const HaloTransfer& each, const PartVectors<T>& v,
                    std::size_t operand) const {
    On::copy(a, v.p + (plan_->shape.own_columns + each.first) * v.columns,
             a.operands[operand].template as<const T>(), each.count * v.columns);
  }

  const PartPlan* plan_;
  const WorkShape* work_;
};

/// Gives the codelets their variants; `variant` is a member of Codelet.
template <class T, class On>
void set_variants(OneReductionPart& part, const PartPlan& plan, const WorkShape& work,
                  Kernel Codelet::*variant) {
  using Args = const Arguments&;
  const OneReductionBodies<T, On> bodies(plan, work);
  const BlockRange all{0, plan.shape.blocks};
  const BlockRange inner{0, plan.shape.inner_blocks};
  const BlockRange border{plan.shape.inner_blocks, plan.shape.blocks};
  part.reload.*variant = [=](Args a) { bodies.reload(a); };
  part.enter.*variant = [=](Args a) { bodies.enter(a); };
  part.move.*variant = [=](Args a) { bodies.move(a); };
  part.step.*variant = [=](Args a) { bodies.step(a); };
  part.product.*variant = [=](Args a) { bodies.product(a, all, true); };
  part.inner.*variant = [=](Args a) { bodies.product(a, inner, false); };
  part.border.*variant = [=](Args a) { bodies.product(a, border, true); };
  part.sum.*variant = [=](Args a) { bodies.sum(a); };
  for (std::size_t i = 0; i < plan.remainders.size(); ++i) {
    part.remainders[i].*variant = [=](Args a) { bodies.remainder(a, i, true); };
    part.resting[i].*variant = [=](Args a) { bodies.remainder(a, i, false); };
  }
}

}  // namespace quadriga::sparse
