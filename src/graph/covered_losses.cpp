// SPDX-License-Identifier: BSD-3-Clause
// src/graph/covered_losses.cpp: which aliases an operand covers.
#include "graph/covered_losses.h"

#include <mutex>

#include "graph/regions.h"
#include "graph/task_life.h"

namespace quadriga {

void cover_losses(Graph& graph, Task& task, bool is_elsewhere) {
  for (const OperandSlot& slot : task.slots()) {
    if (slot.access != Access::write || !slot.datum->aliased.load(std::memory_order_relaxed) ||
        slot.datum->poisoned.load(std::memory_order_acquire))
      continue;
    std::lock_guard lock(graph.submission());
    for (Datum* const alias : slot.datum->aliases) {
      if (!alias->is_lost() || !covers(region_of(*slot.datum), region_of(*alias))) continue;
      if (!is_elsewhere)
        overwritten(*alias);
      else if (!alias->dirty && alias->brought_home.id == 0)  // not written since
        lose(*alias, true);
    }
  }
}

}  // namespace quadriga
