// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_division.h: codelets of Python's that say how they divide.
#pragma once

#include <quadriga/codelet.h>

namespace quadriga::python {

/// The codelet of fine tasks of the same operation: they call a quadriga.division.FineTask.
/// `divides`: those divide in turn.
Codelet fine_codelet(const Codelet& codelet, bool divides);

/// Lets tasks of a codelet, whose parameters are BodyParams, be divided by their record.
void divide_by_record(Codelet& codelet);

}  // namespace quadriga::python
