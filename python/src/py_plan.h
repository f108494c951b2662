// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_plan.h: exchanges of arrays that are set up once.
#pragma once

#include <memory>
#include <vector>

#include "bindings.h"
#include "message/communicator.h"
#include "py_array_place.h"

namespace quadriga::python {

struct PyPlan {
  message::ExchangeTransfers transfers;  ///< They keep their arrays.
};

/// Of lists of tuples (array, rank, tag, layout), the layout None for all of the array.
PyPlan plan_of(const message::CommunicatorCore& communicator, nb::handle sends,
               nb::handle receives);
void bind_plan(nb::module_& module);

}  // namespace quadriga::python
