// SPDX-License-Identifier: BSD-3-Clause
// src/engine/engine_hold.cpp: the host's access to data among tasks.
#include <fmt/format.h>
#include <quadriga/engine.h>

#include <algorithm>
#include <mutex>

#include "base/log.h"
#include "engine/bodies.h"
#include "engine/engine_access.h"
#include "engine/engine_impl.h"
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

std::thread::id& acting_thread() noexcept {
  thread_local std::thread::id id = std::this_thread::get_id();
  return id;
}

/// What this thread has in its accesses that haven't ended.
std::vector<HeldDatum> Engine::Impl::held_by(std::thread::id thread) {
  std::vector<HeldDatum> mine;
  if (held.load(std::memory_order_acquire) == 0) return mine;
  std::lock_guard lock(data_mutex);
  for (const std::shared_ptr<Hold>& each : holds)
    if (each->owner == thread) mine.insert(mine.end(), each->data.begin(), each->data.end());
  return mine;
}

/// The operands with their aliases, but for what this thread holds already: of what it asks for
/// again, others may still have the aliases. Links the hold and is true if nothing is in its way.
/// The submission lock is held.
bool Engine::Impl::begin_hold(Hold& hold, std::span<const HeldDatum> mine,
                              std::vector<TaskRef>& conflicts) {
  for (std::size_t i = 0, count = hold.data.size(); i < count; ++i) {
    const HeldDatum each = hold.data[i];
    for (Datum* const alias : each.datum->aliases)
      want(hold.data, alias, writes(each.access) ? Access::update : Access::read, each.is_seen);
  }
  std::erase_if(hold.data, [&](const HeldDatum& each) { return holds_already(mine, each); });
  conflicts.clear();
  if (hold.data.empty()) return true;
  for (HeldDatum& each : hold.data) {
    graph.collect(*each.datum, each.access, conflicts);
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
  graph.link_hold(task);
  return true;
}

std::shared_ptr<Hold> Engine::Impl::hold(std::vector<HeldDatum> wanted, Nanoseconds deadline,
                                         bool names_lost, bool passes) {
  if (current_task(graph))
    fail(Errc::unavailable,
         "on_host() can't be called within a task, which accesses its operands directly");
  auto hold = std::make_shared<Hold>();
  hold->owner = acting_thread();
  hold->names_lost = names_lost;
  hold->passes = passes;
  const std::vector<HeldDatum> mine = held_by(hold->owner);
  hold->asked = std::move(wanted);
  for (const HeldDatum& each : hold->asked) {
    refuse_to_write_what_is_read(mine, each);
    if (!holds_already(mine, each)) reductions->end(*each.datum, nullptr);
  }
  for (HeldDatum& each : hold->asked) each.is_seen = each.access != Access::write;
  hold->task = graph.allocate(true);
  hold->task->codelet = &host_codelet();
  hold->task->has_extra = hold->task->has_commute = hold->task->has_params = false;
  hold->task->has_parent = false;
  hold->task->group = nullptr;
  hold->task->planned = nullptr;
  const auto give_slot_back = [&] {
    std::lock_guard lock(data_mutex);
    graph.release(hold->task, unused_slots);
    graph.flush(unused_slots);
  };
  std::vector<TaskRef> conflicts;
  for (;;) {
    hold->data = hold->asked;
    {
      std::lock_guard lock(graph.submission());
      for (const HeldDatum& each : hold->asked)
        if (!holds_already(mine, each)) renaming->bring_home_locked(*each.datum);
      if (begin_hold(*hold, mine, conflicts)) break;
    }
    try {
      await_turn(*hold, conflicts, deadline);
    } catch (...) {
      give_slot_back();
      throw;
    }
  }
  if (hold->data.empty()) {
    give_slot_back();
    return hold;
  }
  hold->engine = this;
  {
    std::lock_guard lock(data_mutex);
    holds.push_back(hold);
    held.fetch_add(1, std::memory_order_release);
  }
  try {
    settle_hold(*hold, deadline);
  } catch (...) {
    {
      std::lock_guard lock(graph.submission());
      for (const HeldDatum& each : hold->data) each.datum->touched = true;
    }
    end_hold(*hold);
    throw;
  }
  return hold;
}

/// Waits until the conflicting tasks have ended and what is to be read is home, in one go.
void Engine::Impl::await_turn(const Hold& hold, const std::vector<TaskRef>& conflicts,
                              Nanoseconds deadline) {
  // The executor doesn't see how another thread's access ends.
  if (on_host || std::ranges::any_of(conflicts, Graph::is_hold, &TaskRef::id))
    return wait_ended(conflicts, deadline);
  for (const TaskRef& ref : conflicts) refuse_own_holds(&ref);
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
  if (!executor->bring_home(leaving, conflicts, deadline))
    fail_late("the tasks that touch the data");
  std::lock_guard lock(graph.submission());
  for (const HeldDatum& each : reading) each.datum->versions_at_home = each.versions;
}

/// Brings home what is to be read, and takes off the devices what may be written.
void Engine::Impl::settle_hold(Hold& hold, Nanoseconds deadline) {
  const auto find_lost = [&]() -> const Datum* {
    const auto lost = std::ranges::find_if(
        hold.data, [](const HeldDatum& each) { return each.is_seen && each.datum->is_lost(); });
    return lost == hold.data.end() ? nullptr : lost->datum;
  };
  std::vector<Datum*> reading;
  std::vector<Datum*> writing;
  if (!on_host) {  // where there is one replica, nothing has to be moved
    std::lock_guard lock(graph.submission());
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
  if (!reading.empty()) bring_home(reading, deadline);
  if (const Datum* const lost = find_lost()) {
    const std::uint64_t failed = lost->failed_by.load(std::memory_order_relaxed);
    if (hold.names_lost && failed != 0) throw LacksResult(failed);
    if (const auto error = failures.take_first()) std::rethrow_exception(error);
    std::rethrow_exception(content_lost(failures.of(failed)));
  }
  if (!writing.empty() && !executor->give_back(writing, true, deadline))
    fail_late("a copy of the data");
  // Not those of now: others may have submitted writers meanwhile, which follow this access.
  std::lock_guard lock(graph.submission());
  for (const HeldDatum& each : hold.data) each.datum->versions_at_home = each.versions;
  hold.granted = true;
}

/// Those that were registered meanwhile and overlap what the host may have written. No aliases of
/// aliases: what the host had no access to may be newer on a device.
std::vector<Datum*> Engine::Impl::registered_since(const Hold& hold) {
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

void Engine::Impl::end_hold(Hold& hold) {
  {
    std::lock_guard lock(data_mutex);
    if (!hold.engine) return;
    hold.engine = nullptr;
    std::erase_if(holds, [&](const auto& each) { return each.get() == &hold; });
    held.fetch_sub(1, std::memory_order_release);
  }
  std::vector<Datum*> written;
  std::vector<Datum*> others;
  if (hold.granted) {
    {
      std::lock_guard lock(graph.submission());
      for (const HeldDatum& each : hold.data)
        if (writes(each.access) && !stays_lost(hold, each)) written.push_back(each.datum);
    }
    // Registered once more, so that none of their places is another's before the driver looks.
    const auto find = [&](std::vector<Datum*>& found) {
      std::lock_guard lock(graph.submission());
      found = registered_since(hold);
      std::erase_if(found, [](const Datum* each) { return each->holders == 0; });
    };
    others = pin(find, never);
  }
  executor->end_hold(*hold.task, written, others);
  graph.hold_ended();
  {
    std::lock_guard lock(data_mutex);
    graph.release(hold.task, unused_slots);
    graph.flush(unused_slots);
  }
  unpin(others);
  unpin(hold.registered);
}

void Engine::Impl::end_holds() {
  std::vector<std::shared_ptr<Hold>> all;
  {
    std::lock_guard lock(data_mutex);
    all = holds;
  }
  for (const std::shared_ptr<Hold>& each : all)
    if (!each->passes) end_hold(*each);
}

void Engine::Impl::refuse_own_holds(const TaskRef* task) {
  if (held.load(std::memory_order_acquire) == 0) return;
  if (task && !Graph::is_hold(task->id) && !task->task->behind_hold) return;
  if (task && graph.ended(*task)) return;
  std::lock_guard lock(data_mutex);
  for (const std::shared_ptr<Hold>& each : holds)
    if (each->owner == acting_thread() &&
        (each->task->successors.load() != 0 || (task && each->task == task->task)))
      fail(Errc::unavailable,
           fmt::format("tasks wait until this thread has left on_host() of {}: leave it before you "
                       "wait",
                       text_of(*each->data.front().datum)));
}

HostAccess Engine::on_host(Data data, Access access, double timeout) {
  Impl& impl = checked();
  require(access <= Access::update, "on_host() takes the modes read, write and update");
  Datum* const datum = data.datum_;
  require(datum && datum->engine == &impl, "on_host(): not data of this engine");
  require(datum->home && !datum->buffer && datum->home_space == host_space,
          "on_host(): the data has no home on the host");
  HostAccess result;
  result.hold_ = impl.hold({{datum, access}}, impl.deadline_after(timeout));
  return result;
}

std::shared_ptr<Hold> hold_regions(EngineAccess::Impl& engine, std::span<const HeldRegion> regions,
                                   Nanoseconds deadline, bool names_lost, bool passes) {
  if (current_task(engine.graph)) return nullptr;  // it has its operands
  std::vector<HeldDatum> wanted;
  const auto find = [&](std::vector<Datum*>& all) {
    wanted.clear();
    for (const HeldRegion& each : regions) {
      std::vector<Datum*> found;
      engine.sharing->overlapping(each.region, found);
      for (Datum* const datum : found) want(wanted, datum, each.access, true);
    }
    for (const HeldDatum& each : wanted) all.push_back(each.datum);
  };
  std::vector<Datum*> registered = engine.pin(find, deadline);
  if (wanted.empty()) return nullptr;
  std::shared_ptr<Hold> found;
  try {
    found = engine.hold(std::move(wanted), deadline, names_lost, passes);
  } catch (...) {
    engine.unpin(registered);
    throw;
  }
  if (found->engine)
    found->registered = std::move(registered);
  else
    engine.unpin(registered);  // the thread had all of it before
  return found;
}

HostAccess EngineAccess::hold(Engine& engine, std::span<const HeldRegion> regions, double timeout,
                              bool names_lost) {
  Engine::Impl& impl = engine.checked();
  HostAccess result;
  result.hold_ = hold_regions(impl, regions, impl.deadline_after(timeout), names_lost);
  return result;
}

bool EngineAccess::has_names(Engine& engine, const Data& data) {
  return engine.checked().renaming->has_names(*data.datum_);
}

std::uint64_t EngineAccess::newest_writer(Engine& engine, const Data& data) {
  return engine.checked().renaming->newest_writer(*data.datum_);
}

std::vector<std::uint64_t> EngineAccess::before_host(Engine& engine, const Data& data,
                                                     Access access) {
  std::vector<std::uint64_t> tasks;
  engine.checked().renaming->collect_before_host(*data.datum_, access, tasks);
  return tasks;
}

std::string EngineAccess::why_failed(const Engine& engine, std::uint64_t task) {
  const std::string first = engine.checked().failures.first_of(task);
  return first.empty() ? fmt::format("task {} failed", task) : first;
}

bool EngineAccess::is_registered(const Engine& engine, const Region& region) {
  Engine::Impl& impl = engine.checked();
  std::vector<Datum*> found;
  std::lock_guard lock(impl.data_mutex);
  impl.sharing->overlapping(region, found);
  return !found.empty();
}

/// No task is to write any of the data, and what home holds is the newest content.
bool Engine::Impl::are_home(std::span<Datum* const> all) {
  {
    std::vector<TaskRef> writers;
    std::lock_guard lock(graph.submission());
    for (Datum* const each : all) graph.collect(*each, Access::read, writers);
    if (!writers.empty()) return false;
    if (std::ranges::any_of(all, [](const Datum* each) { return each->renamed; })) return false;
    const auto is_known = [](Datum* each) { return each->versions == each->versions_at_home; };
    if (on_host || std::ranges::all_of(all, is_known)) return true;
  }
  return std::ranges::all_of(all, [&](Datum* const each) -> bool {
    return executor->valid({&each, 1}, each->home_space).front();
  });
}

bool EngineAccess::is_home(const Engine& engine, const Data& data) {
  Engine::Impl& impl = engine.checked();
  Datum* const asked = datum(data);
  const std::vector<Datum*> aliases = impl.pin_aliases(*asked, false, never);
  std::vector<Datum*> all{asked};
  all.insert(all.end(), aliases.begin(), aliases.end());
  const bool found = impl.are_home(all);
  impl.unpin(aliases);
  return found;
}

bool EngineAccess::has_come_home(const Engine& engine, const Data& data) {
  return engine.checked().executor->has_come_home(*datum(data));
}

void EngineAccess::bring_all_home(Engine& engine) {
  Engine::Impl& impl = engine.checked();
  impl.wait_ended(impl.renaming->bring_idle_home(), never);
  impl.executor->bring_all_home(never);
  if (const auto error = impl.failures.take_untold()) std::rethrow_exception(error);
}

bool EngineAccess::is_lost(const Engine& engine, DeviceId device) {
  return engine.checked().executor->devices().is_lost(device);
}

HostAccess& HostAccess::operator=(HostAccess&& other) noexcept {
  release();
  hold_ = std::move(other.hold_);
  return *this;
}

void HostAccess::release() noexcept {
  const auto hold = std::move(hold_);
  if (hold) EngineAccess::end(*hold);
}

/// What went wrong is some task's, and told by who waits for it.
void EngineAccess::end(Hold& hold) noexcept {
  if (!hold.engine) return;
  try {
    static_cast<Engine::Impl*>(hold.engine)->end_hold(hold);
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("an access on the host did not end: {}", error.what()));
  }
}

bool HostAccess::is_awaited() const noexcept {
  return hold_ && hold_->engine && hold_->task->successors.load(std::memory_order_acquire) != 0;
}

}  // namespace quadriga
