// SPDX-License-Identifier: BSD-3-Clause
// src/engine/others.cpp: order between tasks of several engines of a process.
//
// Invariants
//   1. A wait is for tasks that were submitted before it, as an access on the host is, and holds no
//      lock. So two threads that submit to two engines never wait for each other.
//   2. A body waits for nothing: tasks may wait for its end. What its task accesses is the body's
//      to pass on; where another engine's task is in the way, the submission is refused.
//   3. An engine in which somebody waits stays until he has left it.
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/process.h"
#include "engine/bodies.h"
#include "engine/engine_impl.h"
#include "engine/occupied.h"
#include "engine/promises.h"

namespace quadriga {

/// The engines of this process that have registered memory.
struct Engine::Impl::Known {
  struct Entry {
    Impl* engine;
    int users;
  };

  Known() {
    // A child's memory is its own, and its parent's tasks don't touch it.
    ::pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); },
                     [] {
                       all().engines.clear();
                       all().count.store(0);
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
  std::atomic<std::size_t> count{0};  ///< Of the entries; read without the lock.
};

Engine::Impl::Known& Engine::Impl::known() { return Known::all(); }

namespace {

/// Whether this thread runs a body, or works for one that waits for it.
bool is_in_body() {
  for (const RunningTask* each = running_here; each; each = each->outer())
    if (each->task()) return true;
  return !occupied_engines().empty();
}

bool accesses(Task& task, const Region& region) {
  return std::ranges::any_of(task.slots(), [&](const OperandSlot& slot) {
    return slot.datum->home && overlap(region_of(*slot.datum), region);
  });
}

}  // namespace

void Engine::Impl::enter_known() {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  if (is_entered.exchange(true)) return;
  all.engines.push_back({this, 0});
  all.count.store(all.engines.size());
}

void Engine::Impl::leave_known() noexcept {
  if (!is_entered.load()) return;
  Known& all = known();
  std::unique_lock lock(all.mutex);
  const auto mine = [&] { return std::ranges::find(all.engines, this, &Known::Entry::engine); };
  all.left.wait(lock, [&] { return mine() == all.engines.end() || mine()->users == 0; });
  if (mine() != all.engines.end()) all.engines.erase(mine());
  all.count.store(all.engines.size());
}

bool Engine::Impl::has_others() const noexcept {
  return known().count.load(std::memory_order_relaxed) > (is_entered.load() ? 1U : 0U);
}

void Engine::Impl::follow_others(std::span<const HeldRegion> regions, InBody in_body) {
  if (!has_others() || regions.empty()) return;
  const bool inside = is_in_body();
  if (inside && in_body == InBody::pass) return;
  std::vector<Impl*> others = known().enter_others(this);
  const Known::Entered entered(others);
  for (Impl* const each : others) {
    if (inside)
      each->refuse_in_way(regions);
    else if (const auto hold = each->hold_regions(regions, never, false))
      EngineAccess::end(*hold);
  }
}

/// Errors: unavailable if a task of this engine conflicts with an access to some memory, which
/// isn't the task's whose body this thread runs.
void Engine::Impl::refuse_in_way(std::span<const HeldRegion> regions) {
  Task* const around = task_around(graph);
  for (const HeldRegion& each : regions) {
    if (around && accesses(*around, each.region)) continue;
    std::vector<Datum*> found;
    std::vector<TaskRef> tasks;
    const std::lock_guard lock(data_mutex);
    sharing->overlapping(each.region, found);
    const std::lock_guard submission(graph.submission());
    for (Datum* const datum : found) {
      tasks.clear();
      graph.collect(*datum, each.access, tasks);
      std::erase_if(tasks, [&](const TaskRef& task) { return graph.ended(task); });
      if (tasks.empty()) continue;
      fail(
          Errc::unavailable,
          fmt::format("a body submits a task on {}, on which {} of another engine hasn't ended, "
                      "and a body doesn't wait for that: wait there before the body's task is "
                      "submitted",
                      text_of(*datum),
                      Graph::is_hold(tasks.front().id) ? std::string("an access by on_host()")
                                                       : fmt::format("task {}", tasks.front().id)));
    }
  }
}

void Engine::Impl::follow_all(std::span<const HeldRegion> regions, std::thread::id runner) {
  if (known().count.load(std::memory_order_relaxed) == 0 || regions.empty()) return;
  BlockingThreads::leave_place();
  std::thread::id before = std::exchange(acting_thread(), runner);
  const auto restore = [](const std::thread::id* thread) { acting_thread() = *thread; };
  const std::unique_ptr<std::thread::id, decltype(restore)> acting(&before, restore);
  std::vector<Impl*> all = known().enter_others(nullptr);
  const Known::Entered entered(all);
  for (Impl* const each : all) each->follow_in_slices(regions);
}

/// What the runner accesses by then isn't waited for.
void Engine::Impl::follow_in_slices(std::span<const HeldRegion> regions) {
  constexpr Nanoseconds slice = 100'000'000;
  const RunningTask none(graph, nullptr);
  for (;;) {
    try {
      if (const auto hold = hold_regions(regions, executor->now() + slice, false))
        EngineAccess::end(*hold);
      return;
    } catch (const Error& error) {
      if (error.code() != Errc::deadline) throw;
    }
  }
}

void Engine::Impl::follow_others(std::span<const Operand> operands) {
  std::vector<HeldRegion> regions;
  for (const Operand& each : operands) {
    const Datum* const datum = EngineAccess::datum(each.data);
    if (!datum || datum->engine != this || !datum->home || datum->buffer || datum->is_private)
      continue;
    const Access access = each.access == Access::read ? Access::read : Access::update;
    regions.push_back({region_of(*datum), access});
  }
  follow_others(regions, InBody::refuse);
}

void EngineAccess::follow_others(Engine& engine, std::span<const HeldRegion> regions) {
  engine.checked().follow_others(regions, Engine::Impl::InBody::pass);
}

void EngineAccess::follow_all(Engine& engine, std::span<const HeldRegion> regions,
                              std::thread::id runner) {
  engine.checked().follow_all(regions, runner);
}

bool EngineAccess::is_in_body() { return quadriga::is_in_body(); }

}  // namespace quadriga
