// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/ready_order.cpp: shows a policy the ready tasks of a device.
#include "schedule/ready_order.h"

namespace quadriga {

TaskView view_of(const Task& task, std::vector<OperandView>& operands) {
  const std::size_t first = operands.size();
  for (int i = 0; i < task.operand_count; ++i) {
    const OperandSlot& slot = task.operands[i];
    operands.push_back({slot.datum->tile, slot.datum->bytes(), slot.access});
  }
  return {.id = task.id.load(std::memory_order_relaxed),
          .codelet = task.codelet->name,
          .priority = task.priority,
          .operands = std::span(operands).subspan(first)};
}

ReadyCandidate ReadyOrder::candidate(const DeviceState& device, const PlannedTask& planned) {
  ReadyCandidate found{.task = view_of(*planned.task, operands_),
                       .kernel_seconds = planned.seconds};
  for (const OperandView& operand : found.task.operands) {
    const auto bytes = static_cast<double>(operand.bytes);
    if (state_.memory->directory().valid(operand.tile, device.space))
      found.bytes_here += bytes;
    else if (reads(operand.access))
      found.bytes_missing += bytes;
  }
  return found;
}

void ReadyOrder::begin(const DeviceState& device) {
  tasks_.clear();
  std::size_t operands = 0;
  for (PlannedTask* const planned : state_.plan.on(device.id).ready()) {
    if (tasks_.size() == most_tasks) break;
    tasks_.push_back(planned);
    operands += planned->task->operand_count;
  }
  operands_.clear();
  operands_.reserve(operands);
  candidates_.clear();
  for (const PlannedTask* const planned : tasks_)
    candidates_.push_back(candidate(device, *planned));
}

PlannedTask* ReadyOrder::next() {
  if (tasks_.empty()) return nullptr;
  const auto chosen = static_cast<std::ptrdiff_t>(policy_.next(candidates_));
  PlannedTask* const planned = tasks_[static_cast<std::size_t>(chosen)];
  tasks_.erase(tasks_.begin() + chosen);
  candidates_.erase(candidates_.begin() + chosen);
  return planned;
}

}  // namespace quadriga
