// SPDX-License-Identifier: BSD-3-Clause
// src/engine/host_bodies.cpp: from a task's operands to views, and from exceptions to failures.
#include "engine/host_bodies.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/bodies.h"
#include "engine/workspaces.h"
#include "graph/covered_losses.h"
#include "graph/task_life.h"

namespace quadriga {

void HostBodies::fail(Task& task, std::exception_ptr error) {
  failures_.record(task, std::move(error), device_);
  poison(task);
}

bool HostBodies::refuse(Task& task, std::exception_ptr error) {
  fail(task, std::move(error));
  return false;
}

std::optional<std::uint64_t> HostBodies::lacks_written(const Task& task) const {
  if (poisoned_operand(task)) return 0;
  for (int i = 0; i < task.operand_count; ++i) {
    const OperandSlot& slot = task.operands[i];
    if (slot.access == Access::write || !slot.datum->aliased.load(std::memory_order_relaxed))
      continue;
    std::lock_guard lock(graph_.submission());
    for (const Datum* const alias : slot.datum->aliases)
      if (alias->poisoned.load(std::memory_order_acquire)) return alias->failed_by.load();
  }
  return std::nullopt;
}

void HostBodies::make_valid(Task& task) {
  for (OperandSlot& slot : task.slots())
    if (slot.access == Access::write) overwritten(*slot.datum);
  cover_losses(graph_, task, false);
}

inline void HostBodies::call(Task& task, const Arguments& arguments) {
  if (is_detached(*task.codelet)) [[unlikely]] {
    task.children.fetch_add(1, std::memory_order_relaxed);
    return run_detached(executor_, &blocking_, graph_, task, arguments);
  }
  const RunningTask running(graph_, &task);
  constexpr DeviceId cores = 0;  // the only device
  const std::size_t workspace_bytes = task.workspace_bytes(cores);
  if (workspace_bytes == 0) [[likely]]
    return run_body(graph_, task, task.codelet->cpu, arguments);
  const HostWorkspace workspace(task, workspace_bytes);
  Arguments with = arguments;
  with.workspace = workspace.memory();
  run_body(graph_, task, task.codelet->cpu, with);
}

bool HostBodies::run(Task& task) {
  if (executor_.cancelled() || task.cancelled()) [[unlikely]]
    return refuse(task, work_cancelled());
  const bool any_failed = failures_.any();
  if (any_failed) [[unlikely]]
    if (const auto failed = lacks_written(task))
      return refuse(task, *failed == 0 ? nullptr : std::make_exception_ptr(LacksResult(*failed)));
  constexpr int most = 8;
  alignas(View) std::byte few[most * sizeof(View)];  // zeros would cost more than a small body
  std::vector<View> many;
  View* views = reinterpret_cast<View*>(few);
  if (task.operand_count > most) [[unlikely]] {
    many.resize(task.operand_count);
    views = many.data();
  }
  bool lacks = false;
  for (int i = 0; i < task.operand_count; ++i) {
    const Datum& datum = *task.operands[i].datum;
    std::construct_at(views + i, View{datum.home, datum.rows, datum.cols, datum.ld, datum.dtype});
    lacks |= lacks_content(task.operands[i]);
  }
  if (lacks) [[unlikely]]
    return refuse(task, no_content());
  if (any_failed) [[unlikely]]  // before the body: a child of the task may poison what it wrote
    make_valid(task);
  try {
    call(task, {{views, task.operand_count}, task.params(), nullptr});
  } catch (...) {
    fail(task, std::current_exception());
  }
  return true;
}

}  // namespace quadriga
