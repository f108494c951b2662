// SPDX-License-Identifier: BSD-3-Clause
// src/graph/task_life.cpp: cancelled tasks, and what failed ones should have written.
#include "graph/task_life.h"

#include <quadriga/error.h>

#include <string>

#include "graph/brings_home.h"

namespace quadriga {

std::exception_ptr work_cancelled() {
  return std::make_exception_ptr(Error(Errc::cancelled, "the work was cancelled"));
}

std::exception_ptr no_content() {
  return std::make_exception_ptr(
      Error(Errc::invalid_argument, "an operand has no content: nothing wrote it"));
}

std::exception_ptr content_lost(const std::exception_ptr& failure) {
  constexpr const char* what = "the data's content is lost: ";
  Errc code = Errc::task_failed;
  std::string why = "a task that should have written it failed";
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const Error& error) {
    if (error.code() == Errc::cancelled) code = Errc::cancelled;
    why = error.what();
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {  // of another type, which says nothing
  }
  return std::make_exception_ptr(Error(code, what + why));
}

void poison(Task& task) noexcept {
  for (OperandSlot& slot : task.slots())
    if (writes(slot.access)) lose(*slot.datum);
}

const Datum* poisoned_operand(const Task& task) noexcept {
  const bool takes_what_there_is = is_bringing_home(task.codelet);
  for (int i = 0; i < task.operand_count; ++i) {
    const OperandSlot& slot = task.operands[i];
    if (slot.access == Access::write || !slot.datum->poisoned.load(std::memory_order_acquire))
      continue;
    if (!takes_what_there_is || slot.datum->is_lost()) return slot.datum;
  }
  return nullptr;
}

}  // namespace quadriga
