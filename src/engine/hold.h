// SPDX-License-Identifier: BSD-3-Clause
// src/engine/hold.h: the host's access to data, ordered with the tasks that access them.
//
// Invariants
//   1. A hold is a task in the graph that no executor knows: it is linked once no conflicting task
//      is pending, and ends when the host releases it. Tasks submitted meanwhile follow it.
//      Nothing is prefetched for them that the host may write (OperandSlot::behind_host); what it
//      only reads may be.
//   2. A thread never waits for its own hold: it may access the data again, and waiting for tasks
//      that follow the hold is an error.
#pragma once

#include <quadriga/types.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/process.h"
#include "graph/regions.h"
#include "graph/task.h"

namespace quadriga {

class Holds;

/// Memory that somebody touches on the host: read, write (all of it) or update.
struct HeldRegion {
  Region region;
  Access access = Access::read;
};

struct HeldDatum {
  Datum* datum = nullptr;
  Access access = Access::read;  ///< read, write (all of it, unseen) or update
  std::uint32_t versions = 0;    ///< Of the datum, when conflicting tasks were last looked for.
  bool is_seen = true;           ///< Not only written: what it has must be valid.
};

struct Hold {
  /// Null once somebody ends it, or if there is nothing to end: who takes it out ends the hold.
  std::atomic<Holds*> of{nullptr};
  Task* task = nullptr;            ///< Of an open one; null once somebody ends it. See `mutex`.
  mutable std::mutex mutex;        ///< Guards `task` between who ends it and who asks about it.
  int process = process_id();      ///< That asked; a child has none of the engine's threads.
  std::vector<HeldDatum> asked;    ///< What the host asked for.
  std::vector<HeldDatum> data;     ///< With aliases, and without what the thread had already.
  std::vector<Datum*> registered;  ///< Once more, for as long as this lasts.
  std::thread::id owner;
  bool passes = false;      ///< Who waited for it ends it at once, also in an engine that ends.
  bool names_lost = false;  ///< Lost content is a LacksResult, and nobody's failure is taken.
  bool untouched = false;   ///< No device has any of the data.
  /// The host had access, and may have written. Who ends it may be another thread than who asked.
  std::atomic<bool> granted{false};
};

/// On whose behalf this thread works: its own, or that of one which waits for it.
std::thread::id& acting_thread() noexcept;

}  // namespace quadriga
