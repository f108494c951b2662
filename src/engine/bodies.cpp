// SPDX-License-Identifier: BSD-3-Clause
// src/engine/bodies.cpp: what each thread runs at the moment.
#include "engine/bodies.h"

namespace quadriga {

thread_local constinit const RunningTask* running_here = nullptr;

void run_submitting_body(Graph& graph, Task& task, const Kernel& body, const Arguments& arguments) {
  try {
    body(arguments);
  } catch (...) {
    graph.body_ended(task);
    throw;
  }
  graph.body_ended(task);
}

}  // namespace quadriga
