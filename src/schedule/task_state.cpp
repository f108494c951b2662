// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/task_state.cpp: the states' names, and what is said where one can't follow another.
#include "schedule/task_state.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include "schedule/planned_task.h"

namespace quadriga {

std::string_view name(TaskState state) noexcept {
  constexpr std::array<std::string_view, task_states> names = {
      "submitted", "deferred", "waiting", "placed",   "gathering", "ready",
      "head",      "skipped",  "issued",  "detached", "going on",  "ended"};
  return names[static_cast<std::size_t>(state)];
}

void PlannedTask::refuse(TaskState next) const {
  fail(Errc::internal, fmt::format("task {} was {} and can't be {}", task ? task->id.load() : 0,
                                   name(state_), name(next)));
}

}  // namespace quadriga
