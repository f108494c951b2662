// SPDX-License-Identifier: BSD-3-Clause
// src/engine/host_pool.cpp: the workers: find, run, finish, sleep.
#include "engine/host_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/thread.h"
#include "engine/guests.h"
#include "graph/task_life.h"
#include "schedule/variants.h"

namespace quadriga {
namespace {

thread_local void* running_pool = nullptr;
thread_local void* running_worker = nullptr;

Nanoseconds clock_now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

HostPool::HostPool(Graph& graph, Failures& failures, Recorder& recorder, const Machine& machine,
                   const HostPoolOptions& options)
    : graph_(graph),
      recorder_(recorder),
      machine_(machine),
      start_(clock_now()),
      queues_(static_cast<std::size_t>(options.workers) + 1,
              [&](std::size_t i) {
                auto policy = make_policy(options.policy, {machine, options.seed + i});
                policy->report_to([](const std::string& text) { log(LogLevel::warning, text); });
                return policy;
              }),
      crew_(graph, crew_hooks(options.divide)),
      waiters_([this] { return now(); }),
      buffers_(options.buffer_bytes, options.spill),
      bodies_(*this, graph, failures, machine.devices.front().name, options.blocking_threads) {
  for (int i = 0; i <= options.workers; ++i) {
    auto& worker = *workers_.emplace_back(std::make_unique<Worker>());
    worker.index = static_cast<std::size_t>(i);
    worker.lane = recorder.add_lane(
        0, StreamKind::compute, i == options.workers ? "submitter" : fmt::format("worker {}", i));
  }
  try {
    for (int i = 0; i < options.workers; ++i) {
      Worker& worker = *workers_[static_cast<std::size_t>(i)];
      worker.thread = start_thread("quadriga worker", [this, &worker] { loop(worker); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

HostPool::~HostPool() { stop(); }

void HostPool::stop() noexcept {
  queues_.stop();
  for (auto& worker : workers_)
    if (worker->thread.joinable()) worker->thread.join();
}

Crew::Hooks HostPool::crew_hooks(bool divide) {
  return {.divides =
              [this, divide] {  // the last place is no worker's
                return divide && queues_.total() + 2 < queues_.places();
              },
          .added = [this] { queues_.added_elsewhere(); },
          .is_wanted = [this] { return queues_.has_tasks(); },
          .is_cancelled =
              [this](const Task* task) { return cancelled() || (task && task->cancelled()); },
          .now = [this] { return now(); },
          .worked = [this](const FineStretch& stretch) { note(stretch); }};
}

void HostPool::note(const FineStretch& stretch) {
  // In a busy period that is still counted, the time is part of that.
  if (const Worker* const self = own())
    recorder_.fine(self->lane, stretch, stretch.helps && self->tasks == 0);
}

HostPool::Worker* HostPool::own() const noexcept {
  return running_pool == this ? static_cast<Worker*>(running_worker) : nullptr;
}

Nanoseconds HostPool::now() const { return clock_now() - start_; }

void HostPool::add(Datum& datum) { buffers_.add(datum); }

void HostPool::remove(std::span<Datum* const> data) {
  for (Datum* const datum : data) buffers_.remove(*datum);
}

void HostPool::check(const Task& task) {
  if (!task.codelet->cpu) refuse_without_variant(machine_, task);
}

void HostPool::ready(Task& task, std::uint64_t) {
  Worker* const self = own();
  push(self ? *self : *workers_.back(), task);
}

void HostPool::loop(Worker& self) {
  running_pool = this;
  running_worker = &self;
  const Crew::Member member(&crew_);
  Task* task = nullptr;
  while (true) {
    if (!task) task = find(self);
    if (task) {
      task = run(self, *task);
    } else if (crew_.has_tasks()) {
      settle(self);  // Fine tasks may take long, and submitters wait for slots.
      crew_.help();
    } else if (queues_.stopping()) {
      break;
    } else {
      idle(self);
    }
  }
  settle(self);
}

Task* HostPool::find(Worker& self) {
  const auto [task, is_stolen] = queues_.next(self.index);
  if (is_stolen)
    recorder_.mark(self.lane, Mark::steal, no_tile, task->id, recorder_.tracing() ? now() : 0);
  return task;
}

void HostPool::settle(Worker& self) {
  graph_.flush(self.free);
  if (self.tasks == 0) return;
  recorder_.kernels(self.lane, self.tasks, clock_now() - self.since, now());
  self.tasks = 0;
}

void HostPool::idle(Worker& self) {
  settle(self);
  const auto has_fine = [this] { return crew_.has_tasks(); };
  if (queues_.search(has_fine, clock_now)) return;
  waiters_.signal();
  queues_.sleep(has_fine);
}

inline void HostPool::execute(Worker& self, Task& task) {
  const bool tracing = recorder_.tracing();
  if (self.tasks == 0 && !tracing) self.since = clock_now();
  const Nanoseconds begin = tracing ? now() : 0;
  if (!bodies_.run(task)) return;
  if (tracing)
    recorder_.kernel(self.lane, task, begin, now());
  else
    ++self.tasks;
}

Task* HostPool::run(Worker& self, Task& task) {
  if (task.has_commute && !commuting_.take(task)) return nullptr;
  execute(self, task);
  if (task.has_commute)
    for (Task* const blocked : commuting_.release(task)) push(self, *blocked);
  return leave(task) ? finish(self, task) : nullptr;
}

void HostPool::kept(Task& task, std::uint64_t, std::exception_ptr error) {
  if (error) bodies_.fail(task, std::move(error));
  if (!leave(task)) return;
  Worker keeper;  // Of this call alone.
  keeper.index = workers_.back()->index;
  Worker* const worker = own();
  Worker& self = worker ? *worker : keeper;
  if (Task* const next = finish(self, task)) push(self, *next);
  graph_.flush(self.free);
  kept_.fetch_add(keeper.ended.load(std::memory_order_relaxed), std::memory_order_release);
  waiters_.signal();
}

Task* HostPool::finish(Worker& self, Task& task) {
  Task* next = nullptr;
  const auto ready = [&](Task& successor, std::uint64_t) {
    Task* other = &successor;
    if (!next || other->priority > next->priority) std::swap(next, other);
    if (other) push(self, *other);
  };
  const auto count = [&] {
    self.ended.store(self.ended.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  };
  if (Task* const parent = end_task(graph_, self.free, task, nullptr, ready, count))
    if (Task* const after = finish(self, *parent)) push(self, *after);
  if (next && queues_.urgency(self.index) > next->priority) {
    push(self, *next);
    next = nullptr;
  }
  return next;
}

bool HostPool::help() {
  constexpr int most = 64;
  if (Worker* const self = own()) {
    Task* task = find(*self);
    if (!task) return false;
    while (task) task = run(*self, *task);
    graph_.flush(self->free);
    return true;
  }
  if (guest_rests) return false;
  std::lock_guard lock(guest_lock_);
  Worker& guest = *workers_.back();
  void* const pool = std::exchange(running_pool, this);
  void* const worker = std::exchange(running_worker, &guest);
  const Crew::Member member(&crew_);
  Task* task = nullptr;
  int count = 0;
  for (; count < most; ++count) {
    if (!task) task = find(guest);
    if (!task) break;
    task = run(guest, *task);
  }
  if (task) push(guest, *task);
  queues_.return_batch(guest.index);
  settle(guest);
  running_pool = pool;
  running_worker = worker;
  return count > 0;
}

}  // namespace quadriga
