// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/part_codelets.cpp: operands to arrays, for the four types.
#include "sparse/kernels/part_codelets.h"

#include <algorithm>
#include <cstring>

#include "base/number_type.h"
#include "sparse/kernels/accesses.h"
#include "sparse/kernels/iterations.h"
#include "sparse/kernels/joint_iterations.h"
#include "sparse/kernels/level_host.h"
#include "sparse/kernels/part_cuda.h"
#include "sparse/kernels/part_kernels.h"
#include "sparse/kernels/scalar_codelets.h"

namespace quadriga::sparse {
namespace {

/// The bodies of one part's codelets.
template <class T>
class Bodies {
 public:
  Bodies(const PartPlan& plan, const WorkShape& work) : plan_(&plan), work_(&work) {}

  void load(const Arguments& a) const {
    const T* const x = a.operands[1].as<const T>();
    const PartVectors<T> v(*work_, a.operands[2].data);
    std::copy_n(x, plan_->shape.rows * v.columns, v.p);
    send(a, arrays(a), x, 3, false);
  }

  void product(const Arguments& a, BlockRange range, bool is_first, bool has_halo) const {
    const bool turns = a.param<ProductParams>().turns;
    const auto* const states = a.operands[1].as<const ColumnState>();
    const PartVectors<T> v(*work_, a.operands[2].data);
    if (turns && std::none_of(states, states + v.columns, is_running)) return;
    if (turns && is_first) turn(arrays(a), v, states);
    if (has_halo) take_halo(a, v, turns ? states : nullptr, 4);
    multiply(arrays(a), range, v, turns ? a.operands[3].as<double>() : nullptr);
  }

  /// Adds what the columns of one arrival contribute.
  void remainder(const Arguments& a, std::size_t index, bool arrives) const {
    const bool turns = a.param<ProductParams>().turns;
    const auto* const states = a.operands[1].as<const ColumnState>();
    const PartVectors<T> v(*work_, a.operands[2].data);
    if (turns && std::none_of(states, states + v.columns, is_running)) return;
    if (arrives) take_arrival(a, plan_->arrivals[index], v, turns ? states : nullptr, 4);
    const bool is_last = index + 1 == plan_->remainders.size();
    add(a, index, v, turns && is_last ? a.operands[3].as<double>() : nullptr);
  }

  void addition(const Arguments& a, std::size_t index) const {
    PartVectors<T> v(*work_, a.operands[2].data);
    v.q = a.operands[1].as<T>();
    add(a, index, v, nullptr);
  }

  void residual_of(const Arguments& a) const {
    const PartVectors<T> v(*work_, a.operands[2].data);
    const T* const q = a.param<ResidualParams>().has_product ? v.q : nullptr;
    residual(arrays(a), v, q, a.operands[1].as<const T>(), a.operands[3].as<double>());
    if (v.z)
      start(a, *plan_, v, {a.param<ResidualParams>().first, true}, nullptr, 4);
    else
      send(a, arrays(a), v.r, 4, true);
  }

  void step_of(const Arguments& a) const {
    const auto* const states = a.operands[1].as<const ColumnState>();
    const PartVectors<T> v(*work_, a.operands[3].data);
    if (std::none_of(states, states + v.columns, is_running)) return;
    step(arrays(a), v, states, a.operands[2].as<T>(), a.operands[4].as<double>());
    if (v.z)
      start(a, *plan_, v, a.param<LevelParams>(), states, 5);
    else
      send(a, arrays(a), v.r, 5, true);
  }

  void apply(const Arguments& a) const {
    PartVectors<T> v(*work_, a.operands[2].data);
    v.q = a.operands[1].as<T>();
    take_halo(a, v, nullptr, 3);
    multiply<T>(arrays(a), {0, plan_->shape.blocks}, v, nullptr);
  }

 private:
  static constexpr auto start = &LevelBodies<T, OnHost<T>>::start;
  static bool is_running(const ColumnState& state) noexcept {
    return state.status == IterationStatus::running;
  }
  PartArrays<T> arrays(const Arguments& a) const { return {plan_->shape, a.operands[0].data}; }

  /// Fills the buffers, which are the operands from `operand` on.
  void send(const Arguments& a, const PartArrays<T>& part, const T* vector, std::size_t operand,
            bool scaled) const {
    std::int64_t first = 0;
    for (const HaloTransfer& each : plan_->sends) {
      gather(part, vector, work_->columns, first, each.count, scaled,
             a.operands[operand++].as<T>());
      first += each.count;
    }
  }

  /// From the buffers, which are the operands from `operand` on; without states, as they are.
  void take_halo(const Arguments& a, const PartVectors<T>& v, const ColumnState* states,
                 std::size_t operand) const {
    for (const HaloTransfer& each : plan_->arrivals) take_arrival(a, each, v, states, operand++);
  }
  void take_arrival(const Arguments& a, const HaloTransfer& each, const PartVectors<T>& v,
                    const ColumnState* states, std::size_t operand) const {
    const T* const arrived = a.operands[operand].as<const T>();
    if (states)
      turn_halo(plan_->shape, v, states, arrived, each.first, each.count);
    else
      std::copy_n(arrived, each.count * v.columns,
                  v.p + (plan_->shape.own_columns + each.first) * v.columns);
  }

  void add(const Arguments& a, std::size_t index, const PartVectors<T>& v, double* sums) const {
    const PartShape& shape = plan_->remainders[index];
    PartVectors<T> apart = v;
    apart.q = v.partial;
    multiply<T>({shape, a.operands[0].data}, {0, shape.blocks}, apart, nullptr);
    add_partial(plan_->shape, v, sums);
  }

  const PartPlan* plan_;
  const WorkShape* work_;
};

/// What a task costs, by the bytes that it touches.
std::function<Cost(const Arguments&)> cost_of(double flops, double bytes) {
  return [=](const Arguments&) { return Cost::of_work(flops, bytes); };
}

/// A signature, and as many buffers behind it.
std::vector<Access> with_buffers(std::initializer_list<Access> signature, std::size_t count,
                                 Access access) {
  std::vector<Access> all(signature);
  all.insert(all.end(), count, access);
  return all;
}

using namespace accesses;

void set_signatures(PartCodelets& part, const PartPlan& plan) {
  const std::size_t sends = plan.sends.size();
  const std::size_t arrivals = plan.arrivals.size();
  part.load = {"sparse_load", with_buffers({in, in, out}, sends, out)};
  part.product = {"sparse_product", with_buffers({in, in, both, out}, arrivals, in)};
  part.inner = {"sparse_product_inner", {in, in, both, out}};
  part.alone = {"sparse_product_alone", {in, in, both, out}};
  part.border = {"sparse_product_border", with_buffers({in, in, both, both}, arrivals, in)};
  part.begin = {"sparse_begin", with_buffers({in, in, out, out}, sends, out)};
  part.residual = {"sparse_residual", with_buffers({in, in, both, out}, sends, out)};
  part.step = {"sparse_step", with_buffers({in, in, both, both, out}, sends, out)};
  part.apply = {"sparse_apply", with_buffers({in, out, both}, arrivals, in)};
  const std::size_t remainders = plan.remainders.size();
  part.remainders.assign(remainders, {"sparse_product_columns", {in, in, both, both, in}});
  part.resting.assign(remainders, {"sparse_product_columns", {in, in, both, both}});
  part.additions.assign(remainders, {"sparse_apply_columns", {in, both, both}});
}

void set_costs_of_remainders(PartCodelets& part, const PartPlan& plan, double columns) {
  for (std::size_t i = 0; i < plan.remainders.size(); ++i) {
    const PartShape& shape = plan.remainders[i];
    part.remainders[i].cost = part.resting[i].cost = part.additions[i].cost =
        cost_of(2 * static_cast<double>(shape.elements) * columns,
                static_cast<double>(shape.bytes) +
                    static_cast<double>(remainder_vector_bytes(shape)) * columns);
  }
}

void set_costs(PartCodelets& part, const PartShape& shape, double columns) {
  const auto size = static_cast<double>(size_of(shape.dtype));
  const double vector = static_cast<double>(shape.rows) * size * columns;
  const double matrix = static_cast<double>(shape.bytes);
  const double flops = 2 * static_cast<double>(shape.elements) * columns;
  const double inner =
      shape.blocks > 0 ? static_cast<double>(shape.inner_blocks) / static_cast<double>(shape.blocks)
                       : 1;
  const double turning = 4 * vector;
  part.load.cost = cost_of(0, 2 * vector);
  const auto product_cost = [=](double share) {
    return [=](const Arguments& a) {
      const double turned = a.param<ProductParams>().turns ? turning : 0;
      return Cost::of_work(flops * share, turned + share * (matrix + 2 * vector));
    };
  };
  part.alone.cost = part.product.cost = product_cost(1);
  part.inner.cost = product_cost(inner);
  part.border.cost = cost_of(flops * (1 - inner), (1 - inner) * (matrix + 2 * vector));
  part.begin.cost = part.residual.cost = cost_of(vector / size * 6, 4 * vector);
  part.step.cost = cost_of(vector / size * 8, 7 * vector);
  part.apply.cost = cost_of(flops, matrix + 2 * vector);
}

template <class T>
void set_bodies(PartCodelets& part, const PartPlan& plan, const WorkShape& work) {
  const Bodies<T> bodies(plan, work);
  const BlockRange all{0, plan.shape.blocks};
  const BlockRange inner{0, plan.shape.inner_blocks};
  const BlockRange border{plan.shape.inner_blocks, plan.shape.blocks};
  part.load.cpu = [=](const Arguments& a) { bodies.load(a); };
  part.product.cpu = [=](const Arguments& a) { bodies.product(a, all, true, true); };
  part.alone.cpu = [=](const Arguments& a) { bodies.product(a, all, true, false); };
  part.inner.cpu = [=](const Arguments& a) { bodies.product(a, inner, true, false); };
  part.border.cpu = [=](const Arguments& a) { bodies.product(a, border, false, true); };
  part.begin.cpu = part.residual.cpu = [=](const Arguments& a) { bodies.residual_of(a); };
  part.step.cpu = [=](const Arguments& a) { bodies.step_of(a); };
  part.apply.cpu = [=](const Arguments& a) { bodies.apply(a); };
  for (std::size_t i = 0; i < plan.remainders.size(); ++i) {
    part.remainders[i].cpu = [=](const Arguments& a) { bodies.remainder(a, i, true); };
    part.resting[i].cpu = [=](const Arguments& a) { bodies.remainder(a, i, false); };
    part.additions[i].cpu = [=](const Arguments& a) { bodies.addition(a, i); };
  }
}

void make(PartCodelets& part, const PartPlan& plan, const WorkShape& work) {
  set_signatures(part, plan);
  set_costs(part, plan.shape, static_cast<double>(work.columns));
  set_costs_of_remainders(part, plan, static_cast<double>(work.columns));
  add_cuda(part, plan, work);
  with_number_type(plan.shape.dtype, [&]<class T>() { set_bodies<T>(part, plan, work); });
}

Codelet pass_codelet() {
  Codelet codelet{"sparse_pass", {in, out}};
  codelet.host_only = true;
  codelet.cost = [](const Arguments&) { return Cost::of_seconds(0); };
  codelet.cpu = [](const Arguments& a) {
    std::memcpy(a.operands[1].data, a.operands[0].data, bytes_of(a.operands[0]));
  };
  return codelet;
}

Codelet bring_codelet() {
  Codelet codelet{"sparse_bring", {in, in}};
  codelet.cost = [](const Arguments&) { return Cost::of_work(0, 0); };
  codelet.cpu = codelet.cuda = [](const Arguments&) {};
  return codelet;
}

}  // namespace

SolveCodelets::SolveCodelets(std::span<const PartPlan> plans, std::int64_t columns,
                             const CyclePlan* cycle, CgMethod method) {
  if (cycle) cycle_ = std::make_unique<CycleCodelets>(cycle->levels, columns);
  for (const PartPlan& plan : plans) {
    blocks_.push_back(plan.shape.blocks);
    works_.push_back(work_shape(plan.shape, columns, method));
    make(parts_.emplace_back(), plan, work(works_.size() - 1));
  }
  restart_ = restart_codelet(blocks_, columns);
  set_step_ = set_step_codelet(blocks_, columns);
  set_direction_ = set_direction_codelet(blocks_, columns);
  snapshot_ = snapshot_codelet();
  pass_ = pass_codelet();
  bring_ = bring_codelet();
  replicate_ = replicate_codelet();
  if (plans.size() == 1) iterations_ = iterations_codelet(*this, plans.front(), cycle);
  if (plans.size() > 1 && !cycle) joint_iterations_ = joint_iterations_codelets(*this, plans);
  if (method != CgMethod::classic)
    one_reduction_ = std::make_unique<OneReductionCodelets>(*this, plans, columns, method);
}

}  // namespace quadriga::sparse
