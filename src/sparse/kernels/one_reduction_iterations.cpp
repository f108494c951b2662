// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/one_reduction_iterations.cpp: the codelets of an iteration's tasks, for all
// parts by one caller.
#include "sparse/kernels/one_reduction_iterations.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "device/recorded.h"
#include "sparse/kernels/accesses.h"
#include "sparse/kernels/iterations.h"
#include "sparse/kernels/joint_iterations.h"
#include "sparse/kernels/part_cuda.h"

namespace quadriga::sparse {
namespace {

/// The codelets of an iteration, and what each gets of the operands of all parts.
class OneReductionIteration {
 public:
  OneReductionIteration(const OneReductionCodelets& codelets, std::span<const PartPlan> plans)
      : codelets_(&codelets), arrivals_(plans.size()) {
    for (const PartPlan& plan : plans) sends_.push_back(plan.sends.size());
    for (std::size_t from = 0; from < plans.size(); ++from)
      for (std::size_t i = 0; i < plans[from].sends.size(); ++i)
        arrivals_[static_cast<std::size_t>(plans[from].sends[i].to)].push_back({from, i});
  }

  /// Calls `visit(part, codelet, its arguments)` for each of iteration `i` of a program, in order,
  /// and `meet()` where all parts must have come to the same point.
  template <class Visit, class Meet>
  void visit(std::span<const Arguments> all, std::int64_t i, Visit visit, Meet meet) const {
    const bool is_pipelined = codelets_->method() == CgMethod::pipelined;
    std::vector<View> views;
    const auto call = [&](std::size_t part, const Codelet& codelet) {
      visit(part, codelet, Arguments{views, {}, all[part].stream});
    };
    const bool is_second = is_pipelined && all.size() > 1 && i % 2 != 0;
    const auto sums_of = [&](std::size_t part) {
      return all[part].operands[is_second ? buffers + sends_[part] : step_sums];
    };
    const auto first_buffer = [&](std::size_t part) {
      return buffers + (is_second ? sends_[part] + 1 : 0);
    };
    for (std::size_t part = 0; part < all.size(); ++part) {
      const std::span<const View> own = all[part].operands;
      views = {own[matrix], own[state], own[x], own[work], sums_of(part)};
      const std::span<const View> out = own.subspan(first_buffer(part), sends_[part]);
      views.insert(views.end(), out.begin(), out.end());
      call(part, codelets_->part(part).step);
    }
    meet();
    for (std::size_t part = 0; part < all.size(); ++part) {
      const std::span<const View> own = all[part].operands;
      views = {own[state], own[history]};
      for (std::size_t other = 0; other < all.size(); ++other) views.push_back(sums_of(other));
      call(part, is_pipelined ? codelets_->set_scalars() : codelets_->end_step());
      views = {own[matrix], own[work], own[product_sums]};
      for (const Sender& each : arrivals_[part])
        views.push_back(all[each.part].operands[first_buffer(each.part) + each.buffer]);
      call(part, codelets_->part(part).product);
    }
    if (is_pipelined) return;
    meet();
    for (std::size_t part = 0; part < all.size(); ++part) {
      views = {all[part].operands[state]};
      for (const Arguments& each : all) views.push_back(each.operands[product_sums]);
      call(part, codelets_->set_step());
    }
  }

  /// Of one part's operands, of so many iterations.
  Cost cost_of(std::size_t part, std::int64_t count) const {
    Cost sum = Cost::of_work(0, 0);
    for (const Codelet* const each :
         {&codelets_->part(part).step, &codelets_->part(part).product, &codelets_->set_scalars()}) {
      const Cost cost = each->cost({});  // They look at nothing.
      sum.order += cost.order;
      sum.volume += cost.volume;
    }
    sum.order *= static_cast<double>(count);
    sum.volume *= static_cast<double>(count);
    return sum;
  }

  void on_host(std::span<const Arguments> all, std::int64_t count) const {
    for (std::int64_t i = 0; i < count && any_column_runs(all.front()); ++i)
      visit(
          all, i, [](std::size_t, const Codelet& codelet, const Arguments& a) { codelet.cpu(a); },
          [] {});
  }

 private:
  enum Place : std::size_t { matrix, state, x, work, product_sums, step_sums, history, buffers };
  /// A part, and which of its buffers.
  struct Sender {
    std::size_t part = 0;
    std::size_t buffer = 0;
  };

  static bool any_column_runs(const Arguments& own) noexcept {
    const View& states = own.operands[state];
    const auto* const first = states.as<const ColumnState>();
    return std::any_of(
        first, first + bytes_of(states) / sizeof(ColumnState),
        [](const ColumnState& each) { return each.status == IterationStatus::running; });
  }

  const OneReductionCodelets* codelets_;
  std::vector<std::size_t> sends_;             ///< Of each part, how many.
  std::vector<std::vector<Sender>> arrivals_;  ///< By part, as its plan: by sender.
};

}  // namespace

Codelet iterations_codelet(const OneReductionCodelets& codelets, const PartPlan& plan,
                           const WorkShape& work) {
  using namespace accesses;
  const OneReductionIteration iteration(codelets, {&plan, 1});
  Codelet codelet{"sparse_iterations", {in, both, both, both, out, out, both}};
  codelet.cost = [=](const Arguments& all) {
    return iteration.cost_of(0, all.param<IterationsParams>().count);
  };
  codelet.cpu = [=](const Arguments& all) {
    iteration.on_host({&all, 1}, all.param<IterationsParams>().count);
  };
  if (Kernel variant = one_reduction_on_cuda(plan, work))
    codelet.cuda = recorded(std::move(variant));
  return codelet;
}

std::vector<Codelet> joint_iterations_codelets(const OneReductionCodelets& codelets,
                                               std::span<const PartPlan> plans) {
  using namespace accesses;
  const auto joint = std::make_shared<const OneReductionIteration>(codelets, plans);
  std::vector<Kernel> cpu = meeting_variants(plans.size(), [joint](std::span<const Arguments> all) {
    joint->on_host(all, all.front().param<JointParams>().count);
  });
  std::vector<Kernel> cuda = recorded_together(plans.size(), [joint](const DeviceQueues& queues) {
    const auto count = queues.members.front().param<JointParams>().count;
    for (std::int64_t i = 0; i < count; ++i)
      joint->visit(
          queues.members, i,
          [&](std::size_t part, const Codelet& codelet, const Arguments& a) {
            queues.turn_to(part);
            codelet.cuda(a);
          },
          queues.meet);
  });
  std::vector<Codelet> made;
  for (std::size_t part = 0; part < plans.size(); ++part) {
    Codelet codelet{"sparse_joint_iterations", {in, both, both, both, out, out}};
    codelet.access.push_back(part == 0 ? both : out);
    codelet.access.resize(codelet.access.size() + plans[part].sends.size(), both);
    if (codelets.method() == CgMethod::pipelined)
      codelet.access.resize(codelet.access.size() + 1 + plans[part].sends.size(), out);
    codelet.waits_to_queue = true;  // for the others
    codelet.cost = [=](const Arguments& own) {
      return joint->cost_of(part, own.param<JointParams>().count);
    };
    codelet.cpu = std::move(cpu[part]);
    codelet.cuda = std::move(cuda[part]);
    made.push_back(std::move(codelet));
  }
  return made;
}

}  // namespace quadriga::sparse
