// SPDX-License-Identifier: BSD-3-Clause
// src/engine/reductions.cpp: groups of reduce accesses: opened, joined, ended by combining.
#include "engine/reductions.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <mutex>

#include "engine/own_task.h"

namespace quadriga {

void Reductions::check(const Codelet& codelet) {
  if (!codelet.init && !codelet.combine) return;
  const auto named = [&](const char* which) {
    return fmt::format("codelet '{}': its {}", codelet.name, which);
  };
  require(codelet.init && codelet.combine,
          named("operands of mode reduce need both init and combine, or neither"));
  require(codelet.init->access == std::vector{Access::write},
          named("init must have one operand, of mode write"));
  require(codelet.combine->access == std::vector{Access::update, Access::read},
          named("combine must have two operands, of modes update and read"));
  require(!codelet.init->submits && !codelet.combine->submits,
          named("init and combine can't submit tasks"));
  require(!codelet.init->workspace && !codelet.combine->workspace,
          named("init and combine have no workspace"));
}

History* Reductions::find_history(Datum& datum, Task* parent) {
  if (!parent) return &datum.history;
  if (!parent->has_extra || !parent->extra.domain) return nullptr;
  const auto found = parent->extra.domain->histories.find(&datum);
  return found == parent->extra.domain->histories.end() ? nullptr : &found->second;
}

History& Reductions::history_of(Datum& datum, Task* parent) {
  if (!parent) return datum.history;
  parent->has_extra = true;
  if (!parent->extra.domain) parent->extra.domain = std::make_unique<Domain>();
  return parent->extra.domain->histories[&datum];
}

std::vector<Datum*>& Reductions::reduced(Task* parent) {
  return parent ? parent->extra.domain->reduced : reduced_;
}

void Reductions::prepare(Task& task) {
  Task* const parent = task.parent();
  const Codelet& codelet = *task.codelet;
  for (int i = 0; i < task.operand_count; ++i) {
    OperandSlot& slot = task.operands[i];
    History* const history = find_history(*slot.datum, parent);
    Reduction* const open = history ? history->reduction.get() : nullptr;
    const bool reduces = slot.access == Access::reduce;
    const bool fits = reduces && (!codelet.combine || (open && codelet.init == open->init &&
                                                       codelet.combine == open->combine));
    if (open && open->combine && !fits) end_group(*slot.datum, *open, parent);
    // What submits tasks on its operands leaves them where its children find them.
    if (reduces && codelet.combine && !codelet.submits)
      join(history_of(*slot.datum, parent), task, i);
  }
}

void Reductions::join(History& history, Task& task, int operand) {
  Datum& target = *task.operands[operand].datum;
  constexpr int most_operands = 64;
  const std::vector<bool> places = executor_.partial_places(*task.codelet, target);
  // Who touches an alias of the target would not find what is in partial results.
  if (places.empty() || operand >= most_operands || target.aliased) return;
  if (!history.reduction) history.reduction = make(target, places);
  Reduction& reduction = *history.reduction;
  if (!reduction.combine) {
    reduction.init = task.codelet->init;
    reduction.combine = task.codelet->combine;
    reduction.priority = task.priority;
    reduced(task.parent()).push_back(&target);
    ++open_;
  }
  reduction.priority = std::max(reduction.priority, task.priority);
  task.has_extra = true;
  if (!task.extra.reductions)
    task.extra.reductions = std::make_unique<Reduction*[]>(task.operand_count);
  task.extra.reductions[operand] = &reduction;
}

/// One that no domain uses any more, or a new one.
std::shared_ptr<Reduction> Reductions::make(Datum& target, const std::vector<bool>& places) {
  for (const std::shared_ptr<Reduction>& free : target.reductions)
    if (free.use_count() == 1) return free;
  auto reduction = std::make_shared<Reduction>();
  for (const bool is_needed : places) {
    std::unique_ptr<Datum>& partial = reduction->partials.emplace_back();
    if (!is_needed) continue;
    partial = std::make_unique<Datum>();
    partial->rows = target.rows;
    partial->cols = target.cols;
    partial->ld = target.rows;
    partial->dtype = target.dtype;
    partial->partial = true;
    executor_.add(*partial);
  }
  target.reductions.push_back(reduction);
  return reduction;
}

void Reductions::end_group(Datum& datum, Reduction& reduction, Task* parent) {
  const Codelet& combine = *reduction.combine;
  reduction.combine = nullptr;
  --open_;
  std::erase(reduced(parent), &datum);
  for (const std::unique_ptr<Datum>& partial : reduction.partials)
    if (partial) submit(combine, datum, *partial, reduction.priority, parent);
}

/// Submits target += partial.
void Reductions::submit(const Codelet& codelet, Datum& target, Datum& partial,
                        std::int32_t priority, Task* parent) {
  Task& task = own_task(graph_, codelet, 2, priority, parent);
  task.operands[0].datum = &target;
  task.operands[0].access = Access::update;
  task.operands[1].datum = &partial;
  task.operands[1].access = Access::read;
  submit_own(graph_, executor_, task);
}

void Reductions::end(Datum& datum, Task* parent) {
  std::lock_guard lock(graph_.submission());
  if (open_ == 0) return;
  History* const history = find_history(datum, parent);
  if (history && history->reduction && history->reduction->combine)
    end_group(datum, *history->reduction, parent);
}

void Reductions::end_all(Task* parent) {
  std::lock_guard lock(graph_.submission());
  if (open_ == 0 || (parent && (!parent->has_extra || !parent->extra.domain))) return;
  const std::vector<Datum*> data = reduced(parent);
  for (Datum* const datum : data)
    end_group(*datum, *find_history(*datum, parent)->reduction, parent);
}

void Reductions::collect(Datum& datum, std::vector<Datum*>& out,
                         std::vector<std::shared_ptr<Reduction>>& kept) {
  std::lock_guard lock(graph_.submission());
  for (std::shared_ptr<Reduction>& reduction : datum.reductions) {
    for (const std::unique_ptr<Datum>& partial : reduction->partials)
      if (partial) out.push_back(partial.get());
    kept.push_back(std::move(reduction));
  }
  datum.reductions.clear();
}

void Graph::body_ended(Task& task) { reductions_->end_all(&task); }

}  // namespace quadriga
