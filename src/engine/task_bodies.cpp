// SPDX-License-Identifier: BSD-3-Clause
// src/engine/task_bodies.cpp: the body, or why it doesn't run.
#include "engine/task_bodies.h"

#include "engine/bodies.h"
#include "graph/failures.h"
#include "graph/task_life.h"
#include "schedule/recovery.h"
#include "schedule/variants.h"

namespace quadriga {
namespace {

/// Throws if a task that wrote one of its operands failed. The scheduler may not know that yet, and
/// may hear of this one first: those of a group of mode reduce follow no order.
void check_producers(const PlannedTask& planned) {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    if (slot.access != Access::write && planned.number > slot.datum->failed_number.load() &&
        planned.accesses[i].epoch == slot.datum->failed_epoch.load())
      throw LacksResult(slot.datum->failed_task.load());
  }
}

void note_failure(const PlannedTask& planned) noexcept {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    if (!writes(slot.access)) continue;
    slot.datum->failed_task.store(planned.task->id.load());
    slot.datum->failed_epoch.store(planned.accesses[i].epoch);
    slot.datum->failed_number.store(planned.number);
  }
}

/// It was called again after a failure (device/device_full.h); nobody has looked since then.
void forget_failure(const PlannedTask& planned) noexcept {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    Datum& datum = *planned.task->operands[i].datum;
    if (datum.failed_number.load(std::memory_order_relaxed) == planned.number)
      datum.failed_number.store(UINT64_MAX);
  }
}

}  // namespace

/// Whether a task that was issued is to be taken back.
bool TaskBodies::is_revoked(const PlannedTask& planned) const noexcept {
  const bool is_cancelled = executor_.cancelled() || planned.task->cancelled();
  return planned.gang ? planned.gang->revokes(is_cancelled) : is_cancelled;
}

void TaskBodies::run(const PlannedTask& planned, const Arguments& arguments) {
  try {
    if (is_revoked(planned)) std::rethrow_exception(work_cancelled());
    check_producers(planned);
    run_variant(planned, arguments);
    forget_failure(planned);
  } catch (...) {
    if (!is_device_lost(std::current_exception())) note_failure(planned);  // else it runs again
    throw;
  }
}

void TaskBodies::run_variant(const PlannedTask& planned, const Arguments& arguments) {
  const Device& device = machine_.devices[planned.device];
  const DeviceKind kind = device.kind;
  const Codelet& codelet = *planned.task->codelet;
  const bool is_kernel = device.space != host_space && planned.task->side();
  if (is_detached(codelet) && !is_kernel)
    return run_detached(executor_, waits_ ? &threads_ : nullptr, graph_, *planned.task, arguments);
  const RunningTask running(graph_, planned.task);
  // Partial results that this task is the first to fill are set to the neutral element.
  for (std::size_t i = 0; i < arguments.operands.size() && planned.to_init; ++i)
    if (planned.to_init >> i & 1)
      variant_for(*codelet.init, kind)({arguments.operands.subspan(i, 1), {}, arguments.stream});
  run_body(graph_, *planned.task, variant_for(codelet, kind), arguments);
}

}  // namespace quadriga
