// SPDX-License-Identifier: BSD-3-Clause
// src/memory/link_tokens.cpp: how much is queued on a link, by what its machine's host takes.
#include "memory/link_tokens.h"

#include "device/reference_machine.h"

namespace quadriga {

LinkTokens tokens_to_host(const Machine& machine) {
  const double seconds_an_end = planning_cost(machine).task_seconds + operation_seconds(machine);
  return {.copies = 2, .seconds = static_cast<double>(ends_at_once) * seconds_an_end};
}

}  // namespace quadriga
