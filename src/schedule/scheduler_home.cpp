// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/scheduler_home.cpp: events about single data: they go home, leave devices, or are
// the host's to write.
#include "graph/task_life.h"
#include "schedule/scheduler.h"

namespace quadriga {

void Scheduler::evict(Datum& datum) {
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.event("evict", datum.tile); });
  memory_.residency().evict(datum.tile);
}

void Scheduler::final(Datum& datum) {
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.event("final", datum.tile); });
  datum.final = true;
  endings_.send_final_home(datum.tile);
}

/// False if it was removed meanwhile, and its place may be another's.
bool Scheduler::knows(const Datum& datum) const {
  const TileUses* const known = state_.plan.uses().known(datum.tile);
  return known && known->datum == &datum;
}

Homecoming Scheduler::bring_home(Datum& datum) {
  if (!knows(datum)) return Homecoming::home;
  // Who renames data loses them without the scheduler, so that the log has to say it.
  const bool is_lost = datum.is_lost();
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.event("bring_home", datum.tile, is_lost); });
  if (is_lost) return Homecoming::home;
  const Directory& directory = memory_.directory();
  const TileId tile = datum.tile;
  const SpaceId owner = directory.owner(tile);
  if (owner == no_space)
    return directory.in_flight(tile, directory.home(tile)) ? Homecoming::under_way
                                                           : Homecoming::home;
  const bool starts = !memory_.transfers().confirmed(tile, owner) ||
                      memory_.evictor().send_home(tile, Reason::write_back);
  return starts ? Homecoming::under_way : Homecoming::no_buffer;
}

bool Scheduler::in_use(const Datum& datum) const {
  const TileUses& uses = *state_.plan.uses().known(datum.tile);
  if (uses.writers > 0 || uses.users > 0) return true;
  for (SpaceId space = 0; space < memory_.replicas().spaces(); ++space)
    if (memory_.directory().pins(datum.tile, space) > 0) return true;
  return false;
}

bool Scheduler::give_back(Datum& datum, bool overwrites) {
  if (!knows(datum)) return true;
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.event("give_back", datum.tile, overwrites); });
  const Directory& directory = memory_.directory();
  for (SpaceId space = 0; space < memory_.replicas().spaces(); ++space)
    if (directory.in_flight(datum.tile, space)) return false;
  if (in_use(datum)) return true;
  // A task that was submitted after the data had come home may have written them since: what it
  // wrote isn't home.
  if (!overwrites && (datum.poisoned.load() || directory.owner(datum.tile) != no_space))
    return true;
  give(datum);
  return true;
}

Homecoming Scheduler::return_home(Datum& datum) {
  if (!knows(datum)) return Homecoming::home;
  const UseTable& uses = state_.plan.uses();
  if (uses.known(datum.tile)->writers == 0 && !datum.resident) {
    const Homecoming found = bring_home(datum);
    if (found != Homecoming::home) return found;
    if (uses.possible_users(datum.tile) == 0 && !give_back(datum, false))
      return Homecoming::under_way;
  }
  state_.lingering.remove(datum.tile);
  return Homecoming::home;
}

void Scheduler::host_wrote(Datum& datum) {
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.event("host_wrote", datum.tile); });
  give(datum);
}

void Scheduler::give(Datum& datum) {
  if (memory_.directory().home_lost(datum.tile)) return;
  memory_.residency().give_home(datum.tile);
  state_.lingering.remove(datum.tile);
  state_.plan.uses().overwritten(datum.tile);
  overwritten(datum);
  datum.failed_number.store(UINT64_MAX);
}

}  // namespace quadriga
