// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/joint_iterations.cpp: the codelets of an iteration's tasks, for all parts by
// one caller.
#include "sparse/kernels/joint_iterations.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "sparse/kernels/accesses.h"

namespace quadriga::sparse {
namespace {

/// The codelets of an iteration, and what each gets of the operands of all parts.
class JointIteration {
 public:
  JointIteration(const SolveCodelets& codelets, std::span<const PartPlan> plans)
      : codelets_(&codelets), arrivals_(plans.size()) {
    for (std::size_t from = 0; from < plans.size(); ++from)
      for (std::size_t i = 0; i < plans[from].sends.size(); ++i)
        arrivals_[static_cast<std::size_t>(plans[from].sends[i].to)].push_back({from, i});
  }

  /// Calls `visit(part, codelet, its arguments)` for each, in order, and `meet()` where all parts
  /// must have come to the same point.
  template <class Visit, class Meet>
  void visit(std::span<const Arguments> all, Visit visit, Meet meet) const {
    static constexpr ProductParams turning{true};
    static const LevelParams unused{};
    std::vector<View> views;
    const auto call = [&](std::size_t part, const Codelet& codelet,
                          std::span<const std::byte> params = {}) {
      visit(part, codelet, Arguments{views, params, all[part].stream});
    };
    for (std::size_t part = 0; part < all.size(); ++part) {
      const std::span<const View> own = all[part].operands;
      views = {own[matrix], own[state], own[work], own[product_sums]};
      for (const Sender& each : arrivals_[part])
        views.push_back(all[each.part].operands[buffers + each.buffer]);
      call(part, codelets_->part(part).product, std::as_bytes(std::span(&turning, 1)));
    }
    meet();
    for (std::size_t part = 0; part < all.size(); ++part) {
      const std::span<const View> own = all[part].operands;
      views = {own[state]};
      append(all, product_sums, views);
      call(part, codelets_->set_step());
      views = {own[matrix], own[state], own[x], own[work], own[residual_sums]};
      views.insert(views.end(), own.begin() + buffers, own.end());
      call(part, codelets_->part(part).step, std::as_bytes(std::span(&unused, 1)));
    }
    meet();
    for (std::size_t part = 0; part < all.size(); ++part) {
      const std::span<const View> own = all[part].operands;
      views = {own[state], own[history]};
      append(all, residual_sums, views);
      call(part, codelets_->set_direction());
    }
  }

  /// Of one part's operands.
  Cost cost_of(std::size_t part, const Arguments& own) const {
    static constexpr ProductParams turning{true};
    const Arguments of_product{{}, std::as_bytes(std::span(&turning, 1))};
    Cost sum = Cost::of_work(0, 0);
    const PartCodelets& codelets = codelets_->part(part);
    for (const Codelet* const each :
         {&codelets.product, &codelets_->set_step(), &codelets.step, &codelets_->set_direction()}) {
      const Cost cost = each->cost(of_product);  // The others look at nothing.
      sum.order += cost.order;
      sum.volume += cost.volume;
    }
    const auto count = static_cast<double>(own.param<JointParams>().count);
    sum.order *= count;
    sum.volume *= count;
    return sum;
  }

  static bool any_runs(const Arguments& own) noexcept {
    const View& states = own.operands[state];
    const auto* const first = states.as<const ColumnState>();
    return std::any_of(
        first, first + bytes_of(states) / sizeof(ColumnState),
        [](const ColumnState& each) { return each.status == IterationStatus::running; });
  }

 private:
  enum Place : std::size_t {
    matrix,
    state,
    x,
    work,
    product_sums,
    residual_sums,
    history,
    buffers
  };
  /// A part, and which of its buffers.
  struct Sender {
    std::size_t part = 0;
    std::size_t buffer = 0;
  };

  static void append(std::span<const Arguments> all, Place place, std::vector<View>& views) {
    for (const Arguments& each : all) views.push_back(each.operands[place]);
  }

  const SolveCodelets* codelets_;
  std::vector<std::vector<Sender>> arrivals_;  ///< By part, as its plan: by sender.
};

std::vector<Kernel> on_host(std::size_t parts, const std::shared_ptr<const JointIteration>& joint) {
  return meeting_variants(parts, [joint](std::span<const Arguments> all) {
    const auto count = all.front().param<JointParams>().count;
    for (std::int64_t i = 0; i < count && JointIteration::any_runs(all.front()); ++i)
      joint->visit(
          all, [](std::size_t, const Codelet& codelet, const Arguments& a) { codelet.cpu(a); },
          [] {});
  });
}

std::vector<Kernel> on_cuda(std::size_t parts, const std::shared_ptr<const JointIteration>& joint) {
  return recorded_together(parts, [joint](const DeviceQueues& queues) {
    const auto count = queues.members.front().param<JointParams>().count;
    for (std::int64_t i = 0; i < count; ++i)
      joint->visit(
          queues.members,
          [&](std::size_t part, const Codelet& codelet, const Arguments& a) {
            queues.turn_to(part);
            codelet.cuda(a);
          },
          queues.meet);
  });
}

}  // namespace

std::vector<Codelet> joint_iterations_codelets(const SolveCodelets& codelets,
                                               std::span<const PartPlan> plans) {
  using namespace accesses;
  const auto joint = std::make_shared<const JointIteration>(codelets, plans);
  std::vector<Kernel> cpu = on_host(plans.size(), joint);
  std::vector<Kernel> cuda = on_cuda(plans.size(), joint);
  std::vector<Codelet> made;
  for (std::size_t part = 0; part < plans.size(); ++part) {
    Codelet codelet{"sparse_joint_iterations", {in, both, both, both, out, out}};
    codelet.access.push_back(part == 0 ? both : out);
    codelet.access.resize(codelet.access.size() + plans[part].sends.size(), both);
    codelet.waits_to_queue = true;  // for the others
    codelet.cost = [=](const Arguments& own) { return joint->cost_of(part, own); };
    codelet.cpu = std::move(cpu[part]);
    codelet.cuda = std::move(cuda[part]);
    made.push_back(std::move(codelet));
  }
  return made;
}

}  // namespace quadriga::sparse
