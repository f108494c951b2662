// SPDX-License-Identifier: BSD-3-Clause
// src/engine/holds.cpp: an access is asked for, waits for its turn, is granted, and ends.
#include "engine/holds.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "engine/bodies.h"
#include "graph/task_life.h"

namespace quadriga {
namespace {

const Codelet& host_codelet() {
  static const Codelet codelet = [] {
    Codelet made;
    made.name = "on_host";
    return made;
  }();
  return codelet;
}

void want(std::vector<HeldDatum>& data, Datum* datum, Access access, bool is_seen) {
  const auto found = std::ranges::find(data, datum, &HeldDatum::datum);
  if (found == data.end()) {
    data.push_back({datum, access, 0, is_seen});
    return;
  }
  if (found->access != access) found->access = Access::update;
  found->is_seen |= is_seen;
}

/// An alias of what the host writes, which is lost, and has a part that the host doesn't write.
bool stays_lost(const Hold& hold, const HeldDatum& each) {
  if (each.is_seen || !each.datum->poisoned.load(std::memory_order_acquire)) return false;
  return std::ranges::none_of(hold.asked, [&](const HeldDatum& asked) {
    return writes(asked.access) && covers(region_of(*asked.datum), region_of(*each.datum));
  });
}

bool holds_already(std::span<const HeldDatum> mine, const HeldDatum& wanted) {
  return std::ranges::any_of(mine, [&](const HeldDatum& has) {
    return has.datum == wanted.datum && (writes(has.access) || !writes(wanted.access));
  });
}

void refuse_to_write_what_is_read(std::span<const HeldDatum> mine, const HeldDatum& wanted) {
  const bool has_some = std::ranges::find(mine, wanted.datum, &HeldDatum::datum) != mine.end();
  if (has_some && !holds_already(mine, wanted))
    fail(Errc::unavailable,
         fmt::format("this thread reads {} on the host, and can't write it before it has left "
                     "on_host()",
                     text_of(*wanted.datum)));
}

}  // namespace

/// The operands with their aliases, but for what this thread holds already: of what it asks for
/// again, others may still have the aliases. Links the hold and is true if nothing is in its way.
/// The submission lock is held.
bool Holds::begin(Hold& hold, std::span<const HeldDatum> mine, std::vector<TaskRef>& conflicts) {
  for (std::size_t i = 0, count = hold.data.size(); i < count; ++i) {
    const HeldDatum each = hold.data[i];
    for (Datum* const alias : each.datum->aliases)
      want(hold.data, alias, writes(each.access) ? Access::update : Access::read, each.is_seen);
  }
  std::erase_if(hold.data, [&](const HeldDatum& each) { return holds_already(mine, each); });
  conflicts.clear();
  if (hold.data.empty()) return true;
  for (HeldDatum& each : hold.data) {
    parts_.graph.collect(*each.datum, each.access, conflicts);
    each.versions = each.datum->versions;
  }
  if (!conflicts.empty()) return false;
  hold.untouched =
      std::ranges::none_of(hold.data, [](const HeldDatum& each) { return each.datum->touched; });
  for (const HeldDatum& each : hold.data)
    if (writes(each.access)) each.datum->touched = false;
  Task& task = *hold.task;
  task.take_slots(hold.data.size());
  for (std::size_t i = 0; i < hold.data.size(); ++i) {
    task.operands[i].datum = hold.data[i].datum;
    task.operands[i].access = hold.data[i].access == Access::read ? Access::read : Access::update;
  }
  parts_.graph.link_hold(task);
  return true;
}

/// Whoever finds the hold among a datum's tasks finds it there, too. The submission lock is held.
void Holds::open(const std::shared_ptr<Hold>& hold) {
  hold->of = this;
  lasting_.fetch_add(1);
  parts_.open.add(hold);
}

std::shared_ptr<Hold> Holds::hold(std::vector<HeldDatum> wanted, Nanoseconds deadline,
                                  bool names_lost, bool passes) {
  if (current_task(parts_.graph))
    fail(Errc::unavailable,
         "on_host() can't be called within a task, which accesses its operands directly");
  auto hold = std::make_shared<Hold>();
  hold->owner = acting_thread();
  hold->names_lost = names_lost;
  hold->passes = passes;
  std::vector<HeldDatum> mine = parts_.open.of(hold->owner);
  hold->asked = std::move(wanted);
  for (const HeldDatum& each : hold->asked) {
    refuse_to_write_what_is_read(mine, each);
    if (!holds_already(mine, each)) parts_.reductions.end(*each.datum, nullptr);
  }
  for (HeldDatum& each : hold->asked) each.is_seen = each.access != Access::write;
  hold->task = parts_.graph.allocate(true);
  hold->task->codelet = &host_codelet();
  hold->task->has_extra = hold->task->has_commute = hold->task->has_params = false;
  hold->task->has_parent = false;
  hold->task->group = nullptr;
  hold->task->planned = nullptr;
  std::vector<TaskRef> conflicts;
  for (;;) {
    hold->data = hold->asked;
    {
      std::lock_guard lock(parts_.graph.submission());
      mine = parts_.open.of(hold->owner);  // who acts for this thread may have come meanwhile
      for (const HeldDatum& each : hold->asked)
        if (!holds_already(mine, each)) parts_.renaming.bring_home_locked(*each.datum);
      if (begin(*hold, mine, conflicts)) {
        if (!hold->data.empty()) open(hold);
        break;
      }
    }
    try {
      await_turn(*hold, conflicts, deadline);
    } catch (...) {
      give_back(parts_.graph, hold->task);
      throw;
    }
  }
  if (hold->data.empty()) {
    give_back(parts_.graph, std::exchange(hold->task, nullptr));
    return hold;
  }
  try {
    settle(*hold, deadline);
  } catch (...) {
    {
      std::lock_guard lock(parts_.graph.submission());
      for (const HeldDatum& each : hold->data) each.datum->touched = true;
    }
    end(*hold);
    throw;
  }
  return hold;
}

/// Waits until the conflicting tasks have ended and what is to be read is home, in one go.
void Holds::await_turn(const Hold& hold, const std::vector<TaskRef>& conflicts,
                       Nanoseconds deadline) {
  // The executor doesn't see how another thread's access ends.
  if (parts_.on_host || std::ranges::any_of(conflicts, Graph::is_hold, &TaskRef::id))
    return parts_.waits.until_ended(conflicts, deadline);
  for (const TaskRef& ref : conflicts) parts_.open.refuse_own(&ref);
  // What was asked for stays registered. Aliases may go until the hold is among their tasks.
  const auto is_asked = [&](const HeldDatum& each) {
    return std::ranges::find(hold.asked, each.datum, &HeldDatum::datum) != hold.asked.end();
  };
  std::vector<HeldDatum> reading;
  std::vector<Datum*> leaving;
  for (const HeldDatum& each : hold.data) {
    if (each.access == Access::write || !is_asked(each)) continue;
    reading.push_back(each);
    leaving.push_back(each.datum);
  }
  if (!parts_.executor.bring_home(leaving, conflicts, deadline))
    parts_.waits.fail_late("the tasks that touch the data");
  std::lock_guard lock(parts_.graph.submission());
  for (const HeldDatum& each : reading) each.datum->versions_at_home = each.versions;
}

/// Brings home what is to be read, and takes off the devices what may be written.
void Holds::settle(Hold& hold, Nanoseconds deadline) {
  const auto find_lost = [&]() -> const Datum* {
    const auto lost = std::ranges::find_if(
        hold.data, [](const HeldDatum& each) { return each.is_seen && each.datum->is_lost(); });
    return lost == hold.data.end() ? nullptr : lost->datum;
  };
  std::vector<Datum*> reading;
  std::vector<Datum*> writing;
  if (!parts_.on_host) {  // where there is one replica, nothing has to be moved
    std::lock_guard lock(parts_.graph.submission());
    for (const HeldDatum& each : hold.data) {
      Datum& datum = *each.datum;
      if (each.access != Access::write && datum.versions_at_home != each.versions)
        reading.push_back(&datum);
      const bool was_lost = datum.poisoned.load(std::memory_order_acquire);
      if (writes(each.access) && (!hold.untouched || was_lost) && !stays_lost(hold, each))
        writing.push_back(&datum);
      // Of those that lack what an alias had to bring, which now is valid or stays lost.
      datum.stale |= datum.aliased && was_lost && !datum.is_lost();
    }
  }
  if (!reading.empty()) parts_.waits.until_home(reading, deadline);
  if (const Datum* const lost = find_lost()) {
    const std::uint64_t failed = lost->failed_by.load(std::memory_order_relaxed);
    if (hold.names_lost && failed != 0) throw LacksResult(failed);
    if (const auto error = parts_.failures.take_first()) std::rethrow_exception(error);
    std::rethrow_exception(content_lost(parts_.failures.of(failed)));
  }
  if (!writing.empty() && !parts_.executor.give_back(writing, true, deadline))
    parts_.waits.fail_late("a copy of the data");
  // Not those of now: others may have submitted writers meanwhile, which follow this access.
  std::lock_guard lock(parts_.graph.submission());
  for (const HeldDatum& each : hold.data) each.datum->versions_at_home = each.versions;
  hold.granted = true;
}

/// Those that were registered meanwhile and overlap what the host may have written. No aliases of
/// aliases: what the host had no access to may be newer on a device.
std::vector<Datum*> Holds::registered_since(const Hold& hold) {
  std::vector<Datum*> found;
  for (const HeldDatum& each : hold.asked) {
    if (!writes(each.access)) continue;
    found.insert(found.end(), each.datum->aliases.begin(), each.datum->aliases.end());
  }
  std::erase_if(found, [&](const Datum* each) {
    return std::ranges::find(hold.data, each, &HeldDatum::datum) != hold.data.end();
  });
  return found;
}

bool Holds::is_awaited(const Hold& hold) noexcept {
  if (hold.process != process_id() || !hold.of.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(hold.mutex);
  return hold.task && hold.task->successors.load(std::memory_order_acquire) != 0;
}

void Holds::end(Hold& hold) {
  if (hold.process != process_id()) return;
  if (Holds* const of = hold.of.exchange(nullptr)) of->end_taken(hold);
}

void Holds::end_taken(Hold& hold) {
  const auto uncount = [](std::atomic<std::size_t>* count) {
    count->fetch_sub(1, std::memory_order_release);  // the engine may go from here on
  };
  const std::unique_ptr<std::atomic<std::size_t>, decltype(uncount)> counted(&lasting_, uncount);
  parts_.open.take(hold);
  Task* task = nullptr;
  {
    const std::lock_guard lock(hold.mutex);
    task = std::exchange(hold.task, nullptr);
  }
  std::vector<Datum*> written;
  std::vector<Datum*> others;
  if (hold.granted) {
    {
      std::lock_guard lock(parts_.graph.submission());
      for (const HeldDatum& each : hold.data)
        if (writes(each.access) && !stays_lost(hold, each)) written.push_back(each.datum);
    }
    // Registered once more, so that none of their places is another's before the driver looks.
    const auto find = [&](std::vector<Datum*>& found) {
      std::lock_guard lock(parts_.graph.submission());
      found = registered_since(hold);
      std::erase_if(found, [](const Datum* each) { return each->holders == 0; });
    };
    others = parts_.registrations.pin(find, never);
  }
  parts_.executor.end_hold(*task, written, others);
  parts_.graph.hold_ended();
  give_back(parts_.graph, task);
  parts_.registrations.unpin(others);
  parts_.registrations.unpin(hold.registered);
}

void Holds::release(Hold& hold) noexcept {
  try {
    end(hold);
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("an access on the host did not end: {}", error.what()));
  }
}

void Holds::end_all() {
  for (const std::shared_ptr<Hold>& each : parts_.open.all())
    if (!each->passes) release(*each);
}

void Holds::await_ended() const noexcept {
  while (lasting_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
}

std::shared_ptr<Hold> Holds::hold_regions(std::span<const HeldRegion> regions, Nanoseconds deadline,
                                          bool names_lost, bool passes) {
  if (current_task(parts_.graph)) return nullptr;  // it has its operands
  std::vector<HeldDatum> wanted;
  const auto find = [&](std::vector<Datum*>& all) {
    wanted.clear();
    for (const HeldRegion& each : regions) {
      std::vector<Datum*> found;
      parts_.sharing.overlapping(each.region, found);
      for (Datum* const datum : found) want(wanted, datum, each.access, true);
    }
    for (const HeldDatum& each : wanted) all.push_back(each.datum);
  };
  std::vector<Datum*> registered = parts_.registrations.pin(find, deadline);
  if (wanted.empty()) return nullptr;
  std::shared_ptr<Hold> found;
  try {
    found = hold(std::move(wanted), deadline, names_lost, passes);
  } catch (...) {
    parts_.registrations.unpin(registered);
    throw;
  }
  if (!parts_.open.keep(*found, registered))  // the thread had all of it before, or the engine ends
    parts_.registrations.unpin(registered);
  return found;
}

bool Holds::are_home(std::span<Datum* const> all) const {
  {
    std::vector<TaskRef> writers;
    std::lock_guard lock(parts_.graph.submission());
    for (Datum* const each : all) parts_.graph.collect(*each, Access::read, writers);
    if (!writers.empty()) return false;
    if (std::ranges::any_of(all, [](const Datum* each) { return each->renamed; })) return false;
    const auto is_known = [](Datum* each) { return each->versions == each->versions_at_home; };
    if (parts_.on_host || std::ranges::all_of(all, is_known)) return true;
  }
  return std::ranges::all_of(all, [&](Datum* const each) -> bool {
    return parts_.executor.valid({&each, 1}, each->home_space).front();
  });
}

}  // namespace quadriga
