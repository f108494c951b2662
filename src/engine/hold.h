// SPDX-License-Identifier: BSD-3-Clause
// src/engine/hold.h: an access of the host's to data, in the order of the tasks that touch them.
//
// Invariants
//   1. A hold is a task in the graph that no executor knows: it is linked once nothing that it
//      conflicts with is pending, and ends when the host says so. Tasks submitted meanwhile follow
//      it; their data may be fetched ahead, which ends when the hold does.
//   2. A thread never waits for a hold of its own: what it has it gets again, and waits for tasks
//      that follow one are refused.
#pragma once

#include <quadriga/types.h>

#include <thread>
#include <vector>

#include "graph/task.h"

namespace quadriga {

struct HeldDatum {
  Datum* datum = nullptr;
  Access access = Access::read;  ///< read, write (all of it, unseen) or update
};

struct Hold {
  void* engine = nullptr;  ///< An Engine::Impl; null once it has ended, or there is nothing to end.
  Task* task = nullptr;
  std::vector<HeldDatum> data;     ///< With aliases, and without what the thread had already.
  std::vector<Datum*> registered;  ///< Once more, for as long as this lasts.
  std::thread::id owner;
  bool untouched = false;  ///< No device has any of the data.

  bool writes() const noexcept {
    for (const HeldDatum& each : data)
      if (quadriga::writes(each.access)) return true;
    return false;
  }
};

/// On whose behalf this thread works: its own, or that of one which waits for it.
std::thread::id& acting_thread() noexcept;

/// What is registered.
struct NewDatum {
  SpaceId space = host_space;
  std::byte* home = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;
  DType dtype = DType::bytes;
  bool keep = false;
  bool resident = false;
  bool is_private = false;
  CopyWatch* watch = nullptr;
};

}  // namespace quadriga
