// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_codelet.h: a codelet whose variant calls a Python record.
#pragma once

#include <nanobind/nanobind.h>
#include <quadriga/codelet.h>

#include <string>

#include "launch.h"
#include "named_tasks.h"
#include "task_record.h"

namespace quadriga::python {

/// What submit() passes to the variant: the task's record, which the engine's registry keeps alive.
struct BodyParams {
  TaskRecord* record = nullptr;
  long long number = 0;
  const LaunchPlan* launch = nullptr;  ///< The record's; null: it has no CUDA source to launch.
};

/// The same, of a record. The GIL must be held.
BodyParams params_of(TaskRecord& record);

/// A hold on the name of a failed task; null if its record's failures keep no exceptions.
/// The GIL must be held.
NamedTasks::Hold held_name(const TaskRecord& record);

/// Where the operands are: (address, leading dimension in elements) of each. The GIL must be held.
nanobind::tuple places(const Arguments& arguments);

/// Keeps the texts that a Cost refers to.
struct PyCodelet {
  Codelet codelet;
  Codelet fine;  ///< The same operation on parts of a divided task's operands.
  std::string kernel;
};

}  // namespace quadriga::python
