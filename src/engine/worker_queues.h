// SPDX-License-Identifier: BSD-3-Clause
// src/engine/worker_queues.h: the ready tasks of a pool's workers: each has a queue of its own, and
// takes from another's when that is empty.
//
// Invariants
//   1. A task is in one place only: a queue, or the batch of the worker that took it.
//   2. A worker's batch, and its policy, are its thread's; all else is any thread's.
//   3. After a task was added, a worker finds it or is woken (event_count.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "engine/event_count.h"
#include "engine/ready_queue.h"
#include "schedule/policy_registry.h"

namespace quadriga {

class WorkerQueues {
 public:
  /// Who says from whom a worker steals.
  using MakePolicy = std::function<std::unique_ptr<CheckedPolicy>(std::size_t worker)>;

  struct Next {
    Task* task = nullptr;  ///< Null: there is none.
    bool stolen = false;   ///< From another worker.
  };

  /// The last place is no worker's, but of those who submit: what is taken there isn't stolen.
  WorkerQueues(std::size_t places, const MakePolicy& make);

  void push(std::size_t place, Task& task) {
    places_[place].queue.push(&task);
    work_.added();
  }
  /// What a worker runs next: what is urgent in its queue, else the rest of its batch, else of its
  /// queue, else what it takes from others.
  Next next(std::size_t place) {
    Place& self = places_[place];
    Task* task = nullptr;
    if (self.queue.top() > 0 && self.queue.pop(&task, 1)) return {task};
    if (self.batch_next < self.batch_count) return {next_of_batch(self)};
    if (self.queue.pop(&task, 1)) return {task};
    return steal(place);
  }
  /// Who won't run the rest of a batch leaves it to others.
  void return_batch(std::size_t place);

  /// The highest priority in a queue; 0 if none is above that.
  std::int32_t urgency(std::size_t place) const noexcept { return places_[place].queue.top(); }
  std::size_t size(std::size_t place) const noexcept { return places_[place].queue.size(); }
  std::size_t places() const noexcept { return places_.size(); }
  bool has_tasks() const noexcept;
  /// Tasks in all queues; a hint.
  std::size_t total() const noexcept;

  /// Looks for tasks, or other work, for some microseconds, awake. True if there is some.
  template <class Other, class Clock>
  bool search(Other&& has_other, Clock&& now) {
    return work_.search([&] { return has_tasks() || has_other(); }, now);
  }
  /// Sleeps until a task or other work is added, or stop().
  template <class Other>
  void sleep(Other&& has_other) {
    work_.sleep([&] { return has_tasks() || has_other(); });
  }
  /// There is work in no queue, which a sleeper should look at.
  void added_elsewhere() noexcept { work_.added(); }
  void stop() noexcept { work_.stop(); }
  bool stopping() const noexcept { return work_.stopping(); }
  int sleepers() const noexcept { return work_.sleepers(); }

 private:
  static constexpr std::size_t batch_size = 32;
  static constexpr std::size_t fetched_ahead = 4;  ///< Tasks of a batch.

  /// Others look at the queue while the worker goes through its batch: not in the same lines.
  struct alignas(128) Place {
    ReadyQueue queue;
    alignas(128) std::unique_ptr<CheckedPolicy> policy;
    std::size_t batch_count = 0;
    std::size_t batch_next = 0;
    Task* batch[batch_size];
    std::vector<double> queued;  ///< For the policy's question.
  };

  static Task* next_of_batch(Place& self) {
    if (self.batch_next + fetched_ahead < self.batch_count)
      fetch_ahead(self.batch[self.batch_next + fetched_ahead]);
    return self.batch[self.batch_next++];
  }
  Next steal(std::size_t place);

  std::vector<Place> places_;
  EventCount work_;
};

}  // namespace quadriga
