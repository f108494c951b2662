// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_plan.h: exchanges of arrays that are set up once.
#pragma once

#include "bindings.h"
#include "message/communicator.h"

namespace quadriga::python {

/// Of lists of tuples (array, rank, tag, layout), the layout None for all of the array.
message::ExchangeTransfers plan_of(const message::CommunicatorCore& communicator, nb::handle sends,
                                   nb::handle receives);
void bind_plan(nb::module_& module);

}  // namespace quadriga::python
