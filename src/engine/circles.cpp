// SPDX-License-Identifier: BSD-3-Clause
// src/engine/circles.cpp: which tasks can't end before a body has, and who waits for them.
#include "engine/circles.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <functional>
#include <list>
#include <mutex>
#include <unordered_set>
#include <vector>

namespace quadriga {
namespace {

/// A task, and what it is of.
struct Placed {
  const Graph* graph;
  Task* task;
  bool is_on_cores;  ///< As all tasks of its graph are, which have no plan then.
};

struct NotedWait {
  const BodyWait* owner;
  std::vector<Placed> bodies;  ///< Of the thread that waits, the innermost first.
  const Graph* graph;          ///< Of the tasks that it waits for.
  std::vector<TaskRef> awaited;
};

struct Waits {
  std::mutex mutex;  ///< Guards `all`; taken before submission locks.
  std::list<NotedWait> all;
};

Waits& waits() {
  static Waits every;
  return every;
}

/// The submission locks of all graphs in the waits (invariant 3).
class AllLocked {
 public:
  AllLocked() {
    for (const NotedWait& each : waits().all) {
      graphs_.push_back(locked(each.graph));
      for (const Placed& body : each.bodies) graphs_.push_back(locked(body.graph));
    }
    std::ranges::sort(graphs_, std::less<>());
    graphs_.erase(std::ranges::unique(graphs_).begin(), graphs_.end());
    for (Graph* const each : graphs_) each->submission().lock();
  }
  ~AllLocked() {
    for (Graph* const each : graphs_) each->submission().unlock();
  }
  AllLocked(const AllLocked&) = delete;
  AllLocked& operator=(const AllLocked&) = delete;

 private:
  // Bodies know theirs as const, for they change nothing of it.
  static Graph* locked(const Graph* graph) { return const_cast<Graph*>(graph); }
  std::vector<Graph*> graphs_;
};

/// The tasks that can't end before some bodies have. The waits and all graphs are locked.
class Behind {
 public:
  explicit Behind(std::span<const Placed> bodies) {
    for (const Placed& each : bodies) add(each);
    do {
      expand();
    } while (add_waiting());
  }
  const TaskRef* find(const Graph& graph, std::span<const TaskRef> tasks) const {
    const auto found = std::ranges::find_if(tasks, [&](const TaskRef& each) {
      return each.task && !graph.ended(each) && all_.contains(each.task);
    });
    return found == tasks.end() ? nullptr : &*found;
  }

 private:
  /// With those that enclose it, which end after it.
  void add(const Placed& placed) {
    for (Task* task = placed.task; task; task = task->parent())
      if (all_.insert(task).second) left_.push_back({placed.graph, task, placed.is_on_cores});
  }
  void expand() {
    while (!left_.empty()) {
      const Placed each = left_.back();
      left_.pop_back();
      if (!each.is_on_cores) continue;
      const std::uintptr_t head = each.task->successors.load(std::memory_order_acquire);
      constexpr std::uintptr_t tags = Task::closed | Task::issued;
      for (auto* edge = reinterpret_cast<const Edge*>(head & ~tags); edge; edge = edge->next)
        add({each.graph, &edge->successor(), true});
    }
  }
  /// Bodies that wait for one of them.
  bool add_waiting() {
    for (const NotedWait& each : waits().all)
      if (!all_.contains(each.bodies.front().task) && find(*each.graph, each.awaited))
        for (const Placed& body : each.bodies) add(body);
    return !left_.empty();
  }

  std::unordered_set<const Task*> all_;
  std::vector<Placed> left_;
};

std::vector<Placed> bodies_of(const RunningTask* running) {
  std::vector<Placed> found;
  for (; running; running = running->outer())
    if (Task* const task = running->task())
      found.push_back({&running->graph(), task, task->planned == nullptr});
  return found;
}

}  // namespace

BodyWait::BodyWait(Graph& graph, const RunningTask* running, std::span<const TaskRef> awaited) {
  const std::vector<Placed> bodies = bodies_of(running);
  if (bodies.empty()) return;
  const std::lock_guard lock(waits().mutex);
  waits().all.push_back({this, bodies, &graph, {awaited.begin(), awaited.end()}});
  is_noted_ = true;
  const AllLocked locked;
  const TaskRef* const found = Behind(bodies).find(graph, awaited);
  if (!found) return;
  const Task& inside = *bodies.front().task;
  const bool is_another = bodies.front().graph != &graph;
  waits().all.pop_back();
  fail(Errc::unavailable,
       fmt::format("the body of task {} '{}' waits for task {}{}, which can't end before the body "
                   "has: neither would end",
                   inside.id.load(std::memory_order_relaxed), inside.codelet->name, found->id,
                   is_another ? " of another engine" : ""));
}

BodyWait::~BodyWait() {
  if (!is_noted_) return;
  const std::lock_guard lock(waits().mutex);
  std::erase_if(waits().all, [&](const NotedWait& each) { return each.owner == this; });
}

}  // namespace quadriga
