// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/iterations.cpp: the codelets of an iteration's tasks, one after the other.
#include "sparse/kernels/iterations.h"

#include <algorithm>
#include <utility>

#include "device/recorded.h"
#include "sparse/kernels/part_cuda.h"

namespace quadriga::sparse {
namespace {

/// The codelets of an iteration, and what each gets of the operands of all.
class Iteration {
 public:
  Iteration(const PartCodelets& part, const Codelet& set_step, const Codelet& set_direction)
      : part_(&part), set_step_(&set_step), set_direction_(&set_direction) {}

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
    call(part_->step, {matrix, state, x, work, residual_sums});
    call(*set_direction_, {state, history, residual_sums});
  }

 private:
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

}  // namespace

Codelet iterations_codelet(const PartCodelets& part, const Codelet& set_step,
                           const Codelet& set_direction, const PartPlan& plan,
                           const WorkShape& work) {
  constexpr Access in = Access::read;
  constexpr Access out = Access::write;
  constexpr Access both = Access::update;
  const Iteration iteration(part, set_step, set_direction);
  Codelet codelet{"sparse_iterations", {in, both, both, both, out, out, both}};
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
  if (Kernel variant = iterations_on_cuda(plan, work)) codelet.cuda = recorded(std::move(variant));
  return codelet;
}

}  // namespace quadriga::sparse
