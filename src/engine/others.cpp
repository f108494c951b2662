// SPDX-License-Identifier: BSD-3-Clause
// src/engine/others.cpp: which engines a process has, and waits for tasks of theirs.
#include "engine/others.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "engine/bodies.h"
#include "engine/engine_impl.h"
#include "engine/occupied.h"
#include "engine/promises.h"

namespace quadriga {
namespace {

using Impl = EngineAccess::Impl;

/// The engines of this process that have registered memory.
class Known {
 public:
  struct Entry {
    Impl* engine;
    int users;
  };

  Known() {
    // A child's memory is its own, and its parent's tasks don't touch it.
    ::pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); },
                     [] {
                       all().engines.clear();
                       known_engines.store(0);
                       all().mutex.unlock();
                     });
  }
  /// Made by the first engine, so that it is there until the last one has gone.
  static Known& all() {
    static Known known;
    return known;
  }
  std::vector<Impl*> enter_others(const Impl* own) {
    const std::lock_guard lock(mutex);
    std::vector<Impl*> found;
    for (Entry& each : engines) {
      if (each.engine == own) continue;
      ++each.users;
      found.push_back(each.engine);
    }
    return found;
  }
  void leave(const Impl* engine) {
    const std::lock_guard lock(mutex);
    if (const auto entry = std::ranges::find(engines, engine, &Entry::engine);
        entry != engines.end())
      --entry->users;
    left.notify_all();
  }

  /// Leaves engines when it goes.
  class Entered {
   public:
    explicit Entered(const std::vector<Impl*>& engines) : engines_(engines) {}
    ~Entered() {
      for (const Impl* const each : engines_) all().leave(each);
    }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    const std::vector<Impl*>& engines_;
  };

  std::mutex mutex;  ///< Guards the entries.
  std::condition_variable left;
  std::vector<Entry> engines;
};

bool accesses(Task& task, const Region& region) {
  return std::ranges::any_of(task.slots(), [&](const OperandSlot& slot) {
    return slot.datum->home && overlap(region_of(*slot.datum), region);
  });
}

/// Errors: unavailable if a task of this engine conflicts with an access to a datum of its.
void refuse_in_way(Impl& engine, Datum& datum, Access access) {
  std::vector<TaskRef> tasks;
  const std::lock_guard submission(engine.graph.submission());
  engine.graph.collect(datum, access, tasks);
  std::erase_if(tasks, [&](const TaskRef& task) { return engine.graph.ended(task); });
  if (tasks.empty()) return;
  fail(Errc::unavailable,
       fmt::format("a body submits a task on {}, on which {} of another engine hasn't ended, "
                   "and a body doesn't wait for that: wait there before the body's task is "
                   "submitted",
                   text_of(datum),
                   Graph::is_hold(tasks.front().id) ? std::string("an access by on_host()")
                                                    : fmt::format("task {}", tasks.front().id)));
}

/// The same for what is registered in some memory, unless that is the task's whose body this thread
/// runs.
void refuse_in_way(Impl& engine, std::span<const HeldRegion> regions) {
  Task* const around = task_around(engine.graph);
  for (const HeldRegion& each : regions) {
    if (around && accesses(*around, each.region)) continue;
    engine.registrations->look(each.region, [&](std::span<Datum* const> found) {
      for (Datum* const datum : found) refuse_in_way(engine, *datum, each.access);
    });
  }
}

/// What the runner accesses by then isn't waited for.
void follow_in_slices(Impl& engine, std::span<const HeldRegion> regions) {
  constexpr Nanoseconds slice = 100'000'000;
  const RunningTask none(engine.graph, nullptr);
  for (;;) {
    const Nanoseconds until = engine.executor->now() + slice;
    try {
      if (const auto hold = engine.holds->hold_regions(regions, until, false, true))
        Holds::release(*hold);
      return;
    } catch (const Error& error) {
      // A task's own failure may be a deadline, too.
      if (error.code() != Errc::deadline || engine.executor->now() < until) throw;
    }
  }
}

}  // namespace

bool is_in_body() {
  for (const RunningTask* each = running_here; each; each = each->outer())
    if (each->task()) return true;
  return !occupied_engines().empty();
}

Others::Others(EngineAccess::Impl& own) : own_(own) { Known::all(); }

void Others::enter() {
  if (is_entered_.load(std::memory_order_relaxed)) return;
  Known& all = Known::all();
  const std::lock_guard lock(all.mutex);
  if (is_entered_.exchange(true)) return;
  all.engines.push_back({&own_, 0});
  known_engines.store(all.engines.size());
}

void Others::leave() noexcept {
  if (!is_entered_.load()) return;
  Known& all = Known::all();
  std::unique_lock lock(all.mutex);
  const auto mine = [&] { return std::ranges::find(all.engines, &own_, &Known::Entry::engine); };
  all.left.wait(lock, [&] { return mine() == all.engines.end() || mine()->users == 0; });
  if (mine() != all.engines.end()) all.engines.erase(mine());
  known_engines.store(all.engines.size());
}

void Others::follow(std::span<const HeldRegion> regions, InBody in_body) {
  if (!any() || regions.empty()) return;
  const bool inside = is_in_body();
  if (inside && in_body == InBody::pass) return;
  std::vector<Impl*> others = Known::all().enter_others(&own_);
  const Known::Entered entered(others);
  for (Impl* const each : others) {
    if (inside)
      refuse_in_way(*each, regions);
    else if (const auto hold = each->holds->hold_regions(regions, never, false, true))
      Holds::release(*hold);
  }
}

void Others::follow(std::span<const Operand> operands) {
  std::vector<HeldRegion> regions;
  for (const Operand& each : operands) {
    const Datum* const datum = EngineAccess::datum(each.data);
    if (!datum || datum->engine != &own_ || !datum->home || datum->buffer || datum->is_private)
      continue;
    const Access access = each.access == Access::read ? Access::read : Access::update;
    regions.push_back({region_of(*datum), access});
  }
  follow(regions, InBody::refuse);
}

void follow_others(Engine& engine, std::span<const HeldRegion> regions) {
  EngineAccess::impl(engine).others.follow(regions, Others::InBody::pass);
}

void follow_all(std::span<const HeldRegion> regions, std::thread::id runner) {
  if (known_engines.load(std::memory_order_acquire) == 0 || regions.empty()) return;
  BlockingThreads::leave_place();
  std::thread::id before = std::exchange(acting_thread(), runner);
  const auto restore = [](const std::thread::id* thread) { acting_thread() = *thread; };
  const std::unique_ptr<std::thread::id, decltype(restore)> acting(&before, restore);
  std::vector<Impl*> all = Known::all().enter_others(nullptr);
  const Known::Entered entered(all);
  for (Impl* const each : all) follow_in_slices(*each, regions);
}

}  // namespace quadriga
