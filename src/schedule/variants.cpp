// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/variants.cpp: tasks that no device is meant to run.
#include "schedule/variants.h"

#include <fmt/format.h>
#include <quadriga/error.h>

namespace quadriga {

void refuse_without_variant(const Machine& machine, const Task& task) {
  const std::string& name = task.codelet->name;
  fail(Errc::unavailable,
       task.gang() ? fmt::format("device '{}' has no variant for codelet '{}'",
                                 machine.devices[task.device].name, name)
                   : fmt::format("no device of this engine has a variant for codelet '{}'", name));
}

}  // namespace quadriga
