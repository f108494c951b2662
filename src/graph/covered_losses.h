// SPDX-License-Identifier: BSD-3-Clause
// src/graph/covered_losses.h: data that were lost, and lie within what a task has written anew.
#pragma once

#include "graph/graph.h"

namespace quadriga {

/// Aliases that lie within what the task has overwritten, if it hasn't failed, are valid from here
/// on, or where that isn't home (`is_elsewhere`), once they are brought up to date. Called before
/// its successors start; takes the submission lock.
void cover_losses(Graph& graph, Task& task, bool is_elsewhere);

}  // namespace quadriga
