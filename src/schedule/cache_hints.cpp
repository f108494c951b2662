// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/cache_hints.cpp: what of a task is fetched how many tasks before its turn.
#include "schedule/cache_hints.h"

#include "graph/graph.h"

namespace quadriga {

void fetch_uses(PlanSet::const_iterator next, PlanSet::const_iterator end) {
  constexpr int near = 2;
  constexpr int far = 4;
  for (int step = 0; next != end && step <= far; ++step, ++next) {
    if (step == far) fetch_task(*next);
    if (step == near) fetch_accesses(**next);
  }
}

void fetch_tasks(PlanSet::const_iterator next, PlanSet::const_iterator end) {
  // Each step needs what the one before it, of the task behind, has brought.
  for (int step = 0; next != end && step <= 6; ++step, ++next) {
    const PlannedTask* const planned = *next;
    switch (step) {
      case 6:
        fetch_task(planned);
        break;
      case 4:
        fetch_accesses(*planned);
        fetch_lines(planned->views.data(), planned->views.size() * sizeof(View));
        fetch_ahead(planned->task);
        break;
      case 3:
        if (const Edge* const edge = Graph::last_edge(*planned->task))
          fetch_lines(edge, sizeof(Edge));
        break;
      case 2:
        if (const Edge* const edge = Graph::last_edge(*planned->task))
          fetch_ahead(&edge->successor());
        break;
      case 1:
        if (const Edge* const edge = Graph::last_edge(*planned->task))
          if (const PlannedTask* const after = edge->successor().planned) fetch_task(after);
        break;
      default:
        break;
    }
  }
}

}  // namespace quadriga
