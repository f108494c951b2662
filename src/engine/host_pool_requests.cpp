// SPDX-License-Identifier: BSD-3-Clause
// src/engine/host_pool_requests.cpp: what others ask of the pool: to wait, to count, to tell.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "engine/bodies.h"
#include "engine/host_pool.h"

namespace quadriga {

bool HostPool::wait(const std::function<bool()>& condition, Nanoseconds deadline, Checked checked) {
  if (condition()) return true;
  if (current_task(graph_)) return wait_inside_task(condition, deadline);
  return waiters_.sleep_until(condition, deadline,
                              checked == Checked::by_anybody ? &condition : nullptr);
}

bool HostPool::bring_home(std::span<Datum* const> /*data*/, std::span<const TaskRef> after,
                          Nanoseconds deadline) {
  const auto has_ended = [&](const TaskRef& ref) { return graph_.ended(ref); };
  return after.empty() ||
         wait([&] { return std::ranges::all_of(after, has_ended); }, deadline, Checked::by_anybody);
}

bool HostPool::wait_inside_task(const std::function<bool()>& condition, Nanoseconds deadline) {
  Task* const ancestor = current_task(graph_);
  const auto descends = [&](const Task& task) {
    for (const Task* up = task.parent(); up; up = up->parent())
      if (up == ancestor) return true;
    return false;
  };
  while (!condition()) {
    if (now() >= deadline) return false;
    Worker* const self = own();
    Task* task = self ? find(*self) : nullptr;
    if (!task) {
      std::this_thread::yield();
    } else if (descends(*task) || task->codelet == copies) {
      if (Task* const next = run(*self, *task)) push(*self, *next);
      graph_.flush(self->free);
    } else {
      push(*workers_.back(), *task);
      std::this_thread::yield();
    }
  }
  return true;
}

void HostPool::end_hold(Task& hold, std::span<Datum* const> written,
                        std::span<Datum* const> /*others*/) {
  give_back(written, true, never);
  graph_.ended(hold, nullptr,
               [&](Task& successor, std::uint64_t) { push(*workers_.back(), successor); });
}

std::uint64_t HostPool::ended() const {
  std::uint64_t sum = kept_.load(std::memory_order_acquire);
  for (const auto& worker : workers_) sum += worker->ended.load(std::memory_order_acquire);
  return sum;
}

void HostPool::count(Counters& counters) const {
  recorder_.count(counters);
  for (DeviceCounters& device : counters.devices) {
    device.computing = device.busy[static_cast<std::size_t>(StreamKind::compute)];
    counters.work_seconds += static_cast<double>(device.computing) / 1e9;
  }
  counters.ended = ended();
  counters.spill_bytes = buffers_.most();
}

void HostPool::reset_counters() { recorder_.reset(); }

std::string HostPool::status() const {
  std::string text = fmt::format("{}: {} workers, {} asleep\n", machine_.devices.front().name,
                                 workers_.size() - 1, queues_.sleepers());
  for (const auto& worker : workers_)
    if (const auto size = queues_.size(worker->index))
      text += fmt::format("  {}: {} ready tasks\n",
                          worker->index + 1 == workers_.size()
                              ? "submitted"
                              : fmt::format("worker {}", worker->index),
                          size);
  return text;
}

}  // namespace quadriga
