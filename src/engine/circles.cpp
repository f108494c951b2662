// SPDX-License-Identifier: BSD-3-Clause
// src/engine/circles.cpp: which tasks can't end before a body has, and who waits for them.
#include "engine/circles.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <unordered_set>
#include <vector>

namespace quadriga {
namespace {

struct NotedWait {
  const BodyWait* owner;
  const Graph* graph;
  Task* inside;
  std::vector<TaskRef> awaited;
};

struct Waits {
  std::mutex mutex;  ///< Guards `all`; taken before a submission lock.
  std::list<NotedWait> all;
};

Waits& waits() {
  static Waits every;
  return every;
}

/// The tasks of a graph that can't end before one has. The submission lock is held, and that of
/// the waits.
class Behind {
 public:
  Behind(const Graph& graph, Task& first) : graph_(graph) {
    add(&first);
    do {
      expand();
    } while (add_waiting());
  }
  const TaskRef* find(std::span<const TaskRef> tasks) const {
    const auto found = std::ranges::find_if(tasks, [&](const TaskRef& each) {
      return each.task && !graph_.ended(each) && all_.contains(each.task);
    });
    return found == tasks.end() ? nullptr : &*found;
  }

 private:
  /// With those that enclose it, which end after it.
  void add(Task* task) {
    for (; task; task = task->parent())
      if (all_.insert(task).second) left_.push_back(task);
  }
  void expand() {
    while (!left_.empty()) {
      const std::uintptr_t head = left_.back()->successors.load(std::memory_order_acquire);
      left_.pop_back();
      constexpr std::uintptr_t tags = Task::closed | Task::issued;
      for (auto* edge = reinterpret_cast<const Edge*>(head & ~tags); edge; edge = edge->next)
        add(&edge->successor());
    }
  }
  /// Bodies that wait for one of them.
  bool add_waiting() {
    for (const NotedWait& each : waits().all)
      if (each.graph == &graph_ && !all_.contains(each.inside) && find(each.awaited))
        add(each.inside);
    return !left_.empty();
  }

  const Graph& graph_;
  std::unordered_set<const Task*> all_;
  std::vector<Task*> left_;
};

}  // namespace

BodyWait::BodyWait(Graph& graph, Task* inside, std::span<const TaskRef> awaited)
    : is_noted_(inside != nullptr) {
  if (!inside) return;
  const std::lock_guard lock(waits().mutex);
  waits().all.push_back({this, &graph, inside, {awaited.begin(), awaited.end()}});
  const std::lock_guard submission(graph.submission());
  const TaskRef* const found = Behind(graph, *inside).find(awaited);
  if (!found) return;
  waits().all.pop_back();
  fail(Errc::unavailable,
       fmt::format("the body of task {} '{}' waits for task {}, which can't end before the body "
                   "has: neither would end",
                   inside->id.load(std::memory_order_relaxed), inside->codelet->name, found->id));
}

BodyWait::~BodyWait() {
  if (!is_noted_) return;
  const std::lock_guard lock(waits().mutex);
  std::erase_if(waits().all, [&](const NotedWait& each) { return each.owner == this; });
}

}  // namespace quadriga
