// SPDX-License-Identifier: BSD-3-Clause
// python/src/codelet.h: a codelet whose variant calls a Python record.
#pragma once

#include <nanobind/nanobind.h>
#include <quadriga/codelet.h>

#include <string>

namespace quadriga::python {

/// What submit() passes to the variant: the task's record, which the engine's registry keeps alive.
struct BodyParams {
  PyObject* record = nullptr;
  long long number = 0;
};

/// Keeps the texts that a Cost refers to.
struct PyCodelet {
  Codelet codelet;
  std::string kernel;
};

}  // namespace quadriga::python
