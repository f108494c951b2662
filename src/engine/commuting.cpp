// SPDX-License-Identifier: BSD-3-Clause
// src/engine/commuting.cpp: all of a task's exclusive operands at once, or none.
#include "engine/commuting.h"

namespace quadriga {
namespace {

bool is_exclusive(const OperandSlot& slot) {
  return slot.access == Access::commute || slot.access == Access::reduce;
}

}  // namespace

bool Commuting::try_all(Task& task) {
  int taken = 0;
  for (; taken < task.operand_count; ++taken) {
    OperandSlot& slot = task.operands[taken];
    if (is_exclusive(slot) && slot.datum->busy.exchange(true, std::memory_order_seq_cst)) break;
  }
  if (taken == task.operand_count) return true;
  while (taken-- > 0)
    if (is_exclusive(task.operands[taken]))
      task.operands[taken].datum->busy.store(false, std::memory_order_seq_cst);
  return false;
}

bool Commuting::take(Task& task) {
  if (try_all(task)) return true;
  const std::lock_guard lock(mutex_);
  count_.fetch_add(1, std::memory_order_seq_cst);
  if (try_all(task)) {
    count_.fetch_sub(1, std::memory_order_seq_cst);
    return true;
  }
  blocked_.push_back(&task);
  return false;
}

std::vector<Task*> Commuting::release(Task& task) {
  for (OperandSlot& slot : task.slots())
    if (is_exclusive(slot)) slot.datum->busy.store(false, std::memory_order_seq_cst);
  if (count_.load(std::memory_order_seq_cst) == 0) return {};
  const std::lock_guard lock(mutex_);
  count_.fetch_sub(static_cast<int>(blocked_.size()), std::memory_order_seq_cst);
  return std::exchange(blocked_, {});
}

}  // namespace quadriga
