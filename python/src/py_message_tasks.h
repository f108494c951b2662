// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_message_tasks.h: communicators of Python as tasks use them.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "engine/message_lane.h"

namespace quadriga::python {

/// A communicator's, made when tasks first use it. The GIL must be held.
std::shared_ptr<MessageLane> lane_of(nanobind::handle communicator);

}  // namespace quadriga::python
