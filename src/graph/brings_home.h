// SPDX-License-Identifier: BSD-3-Clause
// src/graph/brings_home.h: the codelets of tasks that only bring aliases home for a datum.
#pragma once

#include <quadriga/codelet.h>

#include <array>

#include "device/backend.h"

namespace quadriga {

/// At the host and on devices. Such a task makes no content: if it fails, what it should have
/// written lacks what an alias lost.
inline const std::array<Codelet, 2>& brings_home() {
  static const std::array<Codelet, 2> both = [] {
    Codelet codelet;
    codelet.name = "refresh";
    codelet.access = {Access::write};
    codelet.cpu = [](const Arguments&) {};
    codelet.cost = [](const Arguments&) { return Cost{no_work, 0, 0}; };
    std::array<Codelet, 2> made{codelet, codelet};
    made[0].host_only = true;
    // A variant for GPUs would let GPUs run what has to be at the host.
    made[1].cuda = made[1].cpu;
    return made;
  }();
  return both;
}

inline bool is_bringing_home(const Codelet* codelet) {
  return codelet == &brings_home()[0] || codelet == &brings_home()[1];
}

}  // namespace quadriga
