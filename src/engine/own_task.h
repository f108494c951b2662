// SPDX-License-Identifier: BSD-3-Clause
// src/engine/own_task.h: tasks that the engine itself submits among its users' tasks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/executor.h"
#include "graph/graph.h"

namespace quadriga {

/// A task with slots for so many operands, which the caller fills; a child of `parent` if that
/// isn't null. Under the submission lock, so a full window isn't waited for.
Task& own_task(Graph& graph, const Codelet& codelet, std::size_t operands, std::int32_t priority,
               Task* parent);
/// Links it and hands it to the executor; returns its id. Under the submission lock.
std::uint64_t submit_own(Graph& graph, Executor& executor, Task& task);

}  // namespace quadriga
