// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/iterations.cpp: the codelets of an iteration's tasks, one after the other.
#include "sparse/kernels/iterations.h"

#include <algorithm>
#include <utility>

#include "device/recorded.h"
#include "sparse/kernels/accesses.h"
#include "sparse/kernels/part_cuda.h"

namespace quadriga::sparse {
namespace {

/// The codelets of an iteration, and what each gets of the operands of all.
class Iteration {
 public:
  Iteration(const SolveCodelets& codelets, const CyclePlan* cycle)
      : part_(&codelets.part(0)),
        set_step_(&codelets.set_step()),
        set_direction_(&codelets.set_direction()),
        codelets_(codelets.cycle()),
        cycle_(cycle) {}

  /// Calls `visit(codelet, its arguments)` for each, in order.
  template <class Visit>
  void visit(const Arguments& all, Visit visit) const {
    static constexpr ProductParams turning{true};
    const auto& [matrix, state, x, work, product_sums, residual_sums, history] = operands(all);
    const auto call = [&](const Codelet& codelet, std::initializer_list<View> views,
                          std::span<const std::byte> params = {}) {
      visit(codelet, Arguments{{views.begin(), views.size()}, params, all.stream});
    };
    call(part_->product, {matrix, state, work, product_sums},
         std::as_bytes(std::span(&turning, 1)));
    call(*set_step_, {state, product_sums});
    const LevelParams first{cycle_ ? cycle_->first : Relaxation{}};
    call(part_->step, {matrix, state, x, work, residual_sums}, std::as_bytes(std::span(&first, 1)));
    for (std::size_t i = 0; cycle_ && i < cycle_->tasks.size(); ++i)
      visit_task(all, cycle_->tasks[i], call);
    call(*set_direction_, {state, history, residual_sums});
  }

 private:
  /// One of M's steps; `call` as above.
  template <class Call>
  void visit_task(const Arguments& all, const CycleTask& task, Call call) const {
    const std::span<const View> in = all.operands;
    const LevelParams given{task.relaxation};
    const auto params = std::as_bytes(std::span(&given, 1));
    const LevelCodelets& codelets = codelets_->of(task.level, 0);
    // Of coarser levels: restriction to it, prolongation from it, its matrix, its work.
    const View* const here = task.level > 0 ? &in[first_of_levels + 4 * (task.level - 1)] : nullptr;
    const View matrix = here ? here[2] : in[0];
    const View work = here ? here[3] : in[3];
    const View* const next = &in[std::min(first_of_levels + 4 * task.level, in.size() - 1)];
    switch (task.step) {
      case CycleStep::relax:
        return call(codelets.relax, {matrix, in[1], work}, params);
      case CycleStep::settle:
        return call(codelets.settle, {matrix, in[1], work}, params);
      case CycleStep::finish:
        return call(codelets.finish, {matrix, in[1], work, in[5]}, params);
      case CycleStep::solve:
        return call(codelets.solve, {matrix, in[1], work}, params);
      case CycleStep::to_coarser:
        return call(codelets.to_coarser, {next[0], next[2], in[1], work, next[3]}, params);
      case CycleStep::to_finer:
        return call(codelets.to_finer, {next[1], matrix, in[1], next[3], work}, params);
    }
  }

  static constexpr std::size_t first_of_levels = 7;
  struct Operands {
    View matrix, state, x, work, product_sums, residual_sums, history;
  };
  static Operands operands(const Arguments& all) noexcept {
    const std::span<const View> in = all.operands;
    return {in[0], in[1], in[2], in[3], in[4], in[5], in[6]};
  }

  const PartCodelets* part_;
  const Codelet* set_step_;
  const Codelet* set_direction_;
  const CycleCodelets* codelets_;
  const CyclePlan* cycle_;
};

bool any_runs(const View& states) noexcept {
  const auto* const first = states.as<const ColumnState>();
  return std::any_of(
      first, first + bytes_of(states) / sizeof(ColumnState),
      [](const ColumnState& each) { return each.status == IterationStatus::running; });
}

Kernel on_host(const Iteration& iteration) {
  return [=](const Arguments& all) {
    const std::int64_t count = all.param<IterationsParams>().count;
    for (std::int64_t i = 0; i < count && any_runs(all.operands[1]); ++i)
      iteration.visit(all, [](const Codelet& codelet, const Arguments& a) { codelet.cpu(a); });
  };
}

/// Queues the codelets' CUDA variants.
Kernel on_cuda(const Iteration& iteration) {
  return [=](const Arguments& all) {
    for (std::int64_t i = 0; i < all.param<IterationsParams>().count; ++i)
      iteration.visit(all, [](const Codelet& codelet, const Arguments& a) { codelet.cuda(a); });
  };
}

}  // namespace

Codelet iterations_codelet(const SolveCodelets& codelets, const PartPlan& plan,
                           const CyclePlan* cycle) {
  using namespace accesses;
  const Iteration iteration(codelets, cycle);
  Codelet codelet{"sparse_iterations", {in, both, both, both, out, out, both}};
  for (std::size_t level = 1; cycle && level < cycle->levels.size(); ++level)
    codelet.access.insert(codelet.access.end(), {in, in, in, out});
  codelet.cost = [=](const Arguments& all) {
    Cost sum = Cost::of_work(0, 0);
    iteration.visit(all, [&](const Codelet& each, const Arguments& a) {
      const Cost cost = each.cost(a);
      sum.order += cost.order;
      sum.volume += cost.volume;
    });
    const auto count = static_cast<double>(all.param<IterationsParams>().count);
    sum.order *= count;
    sum.volume *= count;
    return sum;
  };
  codelet.cpu = on_host(iteration);
  // The last blocks of threads form the scalars only where M is part of the step.
  Kernel variant = iterations_on_cuda(plan, codelets.work(0));
  if (variant && cycle) variant = on_cuda(iteration);
  if (variant) codelet.cuda = recorded(std::move(variant));
  return codelet;
}

}  // namespace quadriga::sparse
