// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/level_codelets.cpp: signatures, costs and host variants; the order of a cycle.
#include "sparse/kernels/level_codelets.h"

#include "base/number_type.h"
#include "sparse/kernels/accesses.h"
#include "sparse/kernels/level_host.h"

namespace quadriga::sparse {
namespace {

using namespace accesses;

/// A signature, and buffers that arrive or are sent behind it.
std::vector<Access> with(std::initializer_list<Access> signature, std::size_t arrivals,
                         std::size_t sends = 0) {
  std::vector<Access> all(signature);
  all.insert(all.end(), arrivals, in);
  all.insert(all.end(), sends, out);
  return all;
}

void set_signatures(LevelCodelets& codelets, const LevelPart& part) {
  const std::size_t arrivals = part.matrix->arrivals.size();
  const std::size_t sends = part.matrix->sends.size();
  codelets.relax = {"sparse_relax", with({in, in, both}, arrivals, sends)};
  codelets.settle = {"sparse_settle", with({in, in, both}, arrivals)};
  codelets.finish = {"sparse_finish", with({in, in, both, both}, arrivals, sends)};
  codelets.solve = {"sparse_coarsest", with({in, in, both}, arrivals)};
  if (!part.restriction) return;
  const PartPlan& down = *part.restriction;
  const PartPlan& up = *part.prolongation;
  codelets.to_coarser = {"sparse_to_coarser", with({in, in, in, both, out}, down.arrivals.size(),
                                                   part.next->sends.size())};
  codelets.to_finer = {"sparse_to_finer",
                       with({in, in, in, both, both}, up.arrivals.size(), sends)};
  codelets.send_residual = {"sparse_send_residual", with({in, in}, 0, down.sends.size())};
  codelets.send_solution = {"sparse_send_solution", with({in, in}, 0, up.sends.size())};
}

/// Of a product, and so many vectors of so many rows read or written beside it.
std::function<Cost(const Arguments&)> cost_of(const PartShape& shape, std::int64_t columns,
                                              std::int64_t vectors, bool has_product = true) {
  const auto size = static_cast<double>(size_of(shape.dtype));
  const auto all = static_cast<double>(columns);
  const double rows = static_cast<double>(shape.rows) * all;
  const double flops = has_product ? 2 * static_cast<double>(shape.elements) * all : rows;
  const double bytes = (has_product ? static_cast<double>(shape.bytes) : 0) +
                       rows * static_cast<double>(vectors) * size;
  return [=](const Arguments&) { return Cost::of_work(flops, bytes); };
}

void set_costs(LevelCodelets& codelets, const LevelPart& part) {
  const std::int64_t columns = part.work->columns;
  codelets.relax.cost = codelets.settle.cost = codelets.finish.cost =
      cost_of(part.matrix->shape, columns, 8);
  codelets.solve.cost = cost_of(part.matrix->shape, columns, 2);
  if (!part.restriction) return;
  codelets.to_coarser.cost = cost_of(part.restriction->shape, columns, 5);
  codelets.to_finer.cost = cost_of(part.prolongation->shape, columns, 5);
  codelets.send_residual.cost = codelets.send_solution.cost =
      cost_of(part.matrix->shape, columns, 1, false);
}

void make(LevelCodelets& codelets, const LevelPart& part) {
  set_signatures(codelets, part);
  set_costs(codelets, part);
  add_cuda(codelets, part);
  with_number_type(part.matrix->shape.dtype,
                   [&]<class T>() { set_variants<T, OnHost<T>>(codelets, part, &Codelet::cpu); });
}

/// The steps of one level and all coarser ones.
class CycleMaker {
 public:
  explicit CycleMaker(std::span<const std::vector<SmoothingStep>> steps) : steps_(steps) {}

  std::vector<CycleTask> make() {
    add_level(0);
    // The last step on the finest level also forms the sums.
    const bool has_last = !tasks_.empty();
    const Relaxation last = has_last ? tasks_.back().relaxation : Relaxation{};
    if (has_last) tasks_.pop_back();
    tasks_.push_back({CycleStep::finish, 0, last});
    return std::move(tasks_);
  }

 private:
  void add_level(std::size_t level) {
    const std::vector<SmoothingStep>& steps = steps_[level];
    for (std::size_t i = 1; i < steps.size(); ++i) add(CycleStep::relax, level, steps[i]);
    if (level + 1 == steps_.size()) return;
    tasks_.push_back({CycleStep::settle, level, {true, false}});
    const bool is_last = level + 2 == steps_.size();
    tasks_.push_back(
        {CycleStep::to_coarser, level, is_last ? Relaxation{} : first_of(steps_[level + 1])});
    if (is_last)
      tasks_.push_back({CycleStep::solve, level + 1});
    else
      add_level(level + 1);
    tasks_.push_back({CycleStep::to_finer, level});
    for (const SmoothingStep& each : steps) add(CycleStep::relax, level, each);
    if (level > 0) tasks_.back().step = CycleStep::settle;
  }
  void add(CycleStep step, std::size_t level, const SmoothingStep& of) {
    tasks_.push_back({step, level, {true, true, false, of.momentum, of.weight}});
  }

  std::span<const std::vector<SmoothingStep>> steps_;
  std::vector<CycleTask> tasks_;
};

}  // namespace

Relaxation first_of(const std::vector<SmoothingStep>& steps) noexcept {
  return {false, true, true, 0, steps.front().weight};
}

std::vector<CycleTask> cycle_of(std::span<const std::vector<SmoothingStep>> steps) {
  return CycleMaker(steps).make();
}

CycleCodelets::CycleCodelets(std::vector<LevelPlans> levels, std::int64_t columns)
    : plans_(std::move(levels)) {
  const std::size_t parts = plans_.front().matrix.size();
  const auto halo = [](std::span<const PartPlan> plans, std::size_t part) {
    return plans.empty() ? 0 : plans[part].shape.halo;
  };
  for (std::size_t level = 0; level < plans_.size(); ++level) {
    const LevelPlans& plans = plans_[level];
    const bool is_coarsest = level > 0 && level + 1 == plans_.size();
    auto& works = works_.emplace_back();
    for (std::size_t part = 0; part < parts; ++part) {
      const PartShape& shape = plans.matrix[part].shape;
      works.push_back(
          work_shape({shape.dtype, shape.rows, is_coarsest ? 0 : shape.halo,
                      is_coarsest ? shape.halo : halo(plans.restriction, part),
                      level == 0 ? 0 : halo(plans_[level - 1].prolongation, part), level == 0},
                     columns));
    }
  }
  for (std::size_t level = 0; level < plans_.size(); ++level) {
    const LevelPlans& plans = plans_[level];
    auto& codelets = codelets_.emplace_back();
    for (std::size_t part = 0; part < parts; ++part) {
      LevelPart of{&plans.matrix[part]};
      of.work = &works_[level][part];
      if (!plans.restriction.empty()) {
        of.restriction = &plans.restriction[part];
        of.prolongation = &plans.prolongation[part];
        of.next = &plans_[level + 1].matrix[part];
        of.next_work = &works_[level + 1][part];
        of.next_is_coarsest = level + 2 == plans_.size();
      }
      make(codelets.emplace_back(), of);
    }
  }
}

}  // namespace quadriga::sparse
