// SPDX-License-Identifier: BSD-3-Clause
// src/engine/host_bodies.cpp: from a task's operands to views, and from exceptions to failures.
#include "engine/host_bodies.h"

#include <utility>
#include <vector>

#include "engine/bodies.h"
#include "graph/task_life.h"

namespace quadriga {

void HostBodies::fail(Task& task, std::exception_ptr error) {
  failures_.record(task, std::move(error), device_);
  poison(task);
}

bool HostBodies::may_run(Task& task) {
  if (executor_.cancelled() || task.cancelled())
    fail(task, work_cancelled());
  else if (failures_.any() && poisoned_operand(task))
    fail(task, nullptr);
  else if (lacks_content(task)) [[unlikely]]
    fail(task, no_content());
  else
    return true;
  return false;
}

bool HostBodies::run(Task& task) {
  if (!may_run(task)) return false;
  constexpr int most = 8;
  View few[most];
  std::vector<View> many;
  View* views = few;
  if (task.operand_count > most) {
    many.resize(task.operand_count);
    views = many.data();
  }
  for (int i = 0; i < task.operand_count; ++i) {
    const Datum& datum = *task.operands[i].datum;
    views[i] = {datum.home, datum.rows, datum.cols, datum.ld, datum.dtype};
  }
  if (failures_.any())  // before the body: a child of the task may poison what it wrote
    for (OperandSlot& slot : task.slots())
      if (slot.access == Access::write) overwritten(*slot.datum);
  try {
    call(task, {{views, task.operand_count}, task.params(), nullptr});
  } catch (...) {
    fail(task, std::current_exception());
  }
  return true;
}

void HostBodies::call(Task& task, const Arguments& arguments) {
  if (is_detached(*task.codelet)) [[unlikely]] {
    task.children.fetch_add(1, std::memory_order_relaxed);
    return run_detached(executor_, &blocking_, graph_, task, arguments);
  }
  const RunningTask running(graph_, &task);
  run_body(graph_, task, task.codelet->cpu, arguments);
}

}  // namespace quadriga
