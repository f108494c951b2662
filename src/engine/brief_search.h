// SPDX-License-Identifier: BSD-3-Clause
// src/engine/brief_search.h: looking for something awake, before one sleeps until it is there.
#pragma once

#include <thread>

#include "device/backend.h"
#include "graph/spin_lock.h"

namespace quadriga {

/// Looks for some microseconds: sleeping and waking cost as many. True if it is there. Stops early
/// where other programs want the core.
template <class There, class Clock>
bool search_briefly(There&& is_there, Clock&& now) {
  constexpr int pauses = 100;
  constexpr int yields = 60;
  // A yield that takes longer than waking gave the core to other programs, and the next would too.
  constexpr Nanoseconds longest = 200'000;
  Nanoseconds before = 0;
  for (int spin = 0; spin < pauses + yields; ++spin) {
    if (is_there()) return true;
    if (spin < pauses) {
      pause_briefly();
      continue;
    }
    const Nanoseconds begin = now();
    if (before > 0 && begin - before > longest) return false;
    before = begin;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace quadriga
