// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/cache_hints.h: brings what the tasks that come next are made of into the processor's
// caches: those of a window don't fit there.
//
// Hints only: nothing is changed, and without them all is the same but slower.
#pragma once

#include <cstddef>

#include "schedule/planned_task.h"

namespace quadriga {

inline void fetch_lines(const void* what, std::size_t bytes) {
  constexpr std::size_t line = 64;
  for (std::size_t at = 0; at < bytes; at += line)
    __builtin_prefetch(static_cast<const char*>(what) + at, 1);
}

inline void fetch_task(const PlannedTask* planned) { fetch_lines(planned, sizeof(PlannedTask)); }

inline void fetch_accesses(const PlannedTask& planned) {
  fetch_lines(planned.accesses.data(), planned.accesses.size() * sizeof(PlannedAccess));
}

/// The tasks behind `next` and the first of their successors, before they are issued in turn.
void fetch_tasks(PlanSet::const_iterator next, PlanSet::const_iterator end);

/// The same of their uses only, before these are looked at.
void fetch_uses(PlanSet::const_iterator next, PlanSet::const_iterator end);

}  // namespace quadriga
