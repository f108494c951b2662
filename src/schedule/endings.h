// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/endings.h: how tasks leave the schedule, whether they were issued or not.
//
// Pure: no thread, device or clock; used by the scheduler's thread only.
//
// Invariants
//   1. A task ends once. One whose promise others keep ends when its body has ended and its promise
//      is kept, whichever comes last.
//   2. What it wrote is certain or lost, and its operands are released, before anybody is told.
//   3. The listener is told last: nothing here uses the task's record afterwards.
#pragma once

#include <exception>

#include "schedule/checked_policy.h"
#include "schedule/gangs.h"
#include "schedule/groups.h"
#include "schedule/planned_uses.h"
#include "schedule/recovery.h"
#include "schedule/state.h"

namespace quadriga {

class Endings {
 public:
  /// Those that keep something of a task until it ends. They must outlive this.
  struct Keepers {
    CheckedPolicy& policy;
    Recovery& recovery;
    Gangs& gangs;
    Groups& groups;
  };
  Endings(ScheduleState& state, const PlannedUses& uses, const Keepers& keepers)
      : state_(state), uses_(uses), keepers_(keepers) {}

  /// The task leaves the schedule; `error`: why it failed, if it has.
  void end(PlannedTask& planned, std::exception_ptr error);
  /// The body of an issued task has ended.
  void body_ended(PlannedTask& planned, const std::exception_ptr& error);
  /// Its promise was kept; `error` null: what it wrote is there. True if the task has ended by it.
  bool kept(PlannedTask& planned, std::exception_ptr error);
  /// What no task will write any more goes home, if it isn't there and there is one.
  void send_final_home(TileId tile);

 private:
  void unpin(const PlannedTask& planned);
  void end_content(PlannedTask& planned, const std::exception_ptr& error);
  void empty_partials(PlannedTask& planned);
  void note_lingering(const Datum& datum);

  ScheduleState& state_;
  const PlannedUses& uses_;
  const Keepers keepers_;
};

}  // namespace quadriga
