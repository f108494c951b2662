// SPDX-License-Identifier: BSD-3-Clause
// src/engine/host_pool.cpp: the workers: find, run, finish, sleep.
#include "engine/host_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"
#include "engine/bodies.h"

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
      failures_(failures),
      recorder_(recorder),
      start_(clock_now()),
      device_name_(machine.devices.front().name),
      buffer_limit_(options.buffer_bytes),
      blocking_(options.blocking_threads) {
  if (!options.spill.empty()) spill_.emplace(options.buffer_bytes, options.spill);
  for (int i = 0; i <= options.workers; ++i) {
    auto& worker = *workers_.emplace_back(std::make_unique<Worker>());
    worker.index = i;
    worker.policy =
        make_policy(options.policy, {machine, options.seed + static_cast<std::uint64_t>(i)});
    worker.policy->report_to([](const std::string& text) { log(LogLevel::warning, text); });
    worker.queued.resize(static_cast<std::size_t>(options.workers) + 1);
    worker.lane = recorder.add_lane(
        0, StreamKind::compute, i == options.workers ? "submitter" : fmt::format("worker {}", i));
  }
  try {
    for (int i = 0; i < options.workers; ++i) {
      Worker& worker = *workers_[static_cast<std::size_t>(i)];
      worker.thread = start_thread([this, &worker] { loop(worker); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

HostPool::~HostPool() { stop(); }

void HostPool::stop() noexcept {
  stopping_.store(true, std::memory_order_seq_cst);
  wakeups_.fetch_add(1, std::memory_order_seq_cst);
  wakeups_.notify_all();
  for (auto& worker : workers_)
    if (worker->thread.joinable()) worker->thread.join();
}

HostPool::Worker* HostPool::own() const noexcept {
  return running_pool == this ? static_cast<Worker*>(running_worker) : nullptr;
}

Nanoseconds HostPool::now() const { return clock_now() - start_; }

/// Room for a tile without a home, from memory or the spill file; throws if there is none.
std::byte* HostPool::new_buffer(std::size_t bytes, std::size_t used) {
  std::byte* buffer = nullptr;
  std::string refusal;
  if (spill_) {
    std::lock_guard lock(spill_lock_);
    buffer = spill_->allocate(bytes);
    if (!buffer) refusal = spill_->refusal();
  } else if (used <= buffer_limit_) {
    buffer = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}, std::nothrow));
  }
  if (buffer) return buffer;
  buffer_bytes_.fetch_sub(bytes);
  if (refusal.empty())
    refusal = fmt::format("{} of host buffers may be used (host_memory, spill)",
                          format_bytes(static_cast<double>(buffer_limit_)));
  fail(Errc::too_large, fmt::format("tiles without a home need {}: {}",
                                    format_bytes(static_cast<double>(used)), refusal));
}

void HostPool::add(Datum& datum) {
  const std::size_t bytes = datum.bytes();
  if (datum.home || bytes == 0) return;
  const std::size_t now_used = buffer_bytes_.fetch_add(bytes) + bytes;
  datum.buffer = new_buffer(bytes, now_used);
  datum.home = datum.buffer;
  std::size_t most = most_buffer_bytes_.load();
  while (most < now_used && !most_buffer_bytes_.compare_exchange_weak(most, now_used)) {
  }
}

void HostPool::remove(std::span<Datum* const> data) {
  for (Datum* const datum : data) {
    if (!datum->buffer) continue;
    if (spill_) {
      std::lock_guard lock(spill_lock_);
      spill_->deallocate(datum->buffer, datum->bytes());
    } else {
      ::operator delete (datum->buffer, std::align_val_t{64});
    }
    datum->buffer = nullptr;
    buffer_bytes_.fetch_sub(datum->bytes());
  }
}

void HostPool::check(const Task& task) {
  if (!task.codelet->cpu)
    fail(Errc::unavailable,
         fmt::format("codelet '{}' has no cpu variant and this engine has no other device",
                     task.codelet->name));
}

void HostPool::ready(Task& task, std::uint64_t) {
  Worker* const self = own();
  push(self ? *self : *workers_.back(), task);
}

void HostPool::push(Worker& to, Task& task) {
  to.queue.push(&task);
  if (sleepers_.load(std::memory_order_seq_cst) > 0 &&
      searching_.load(std::memory_order_seq_cst) == 0)
    wake_sleeper();
}

void HostPool::wake_sleeper() {
  wakeups_.fetch_add(1, std::memory_order_seq_cst);
  wakeups_.notify_one();
}

void HostPool::loop(Worker& self) {
  running_pool = this;
  running_worker = &self;
  Task* task = nullptr;
  while (true) {
    if (!task) task = find(self);
    if (task) {
      task = run(self, *task);
    } else if (stopping_.load(std::memory_order_acquire)) {
      break;
    } else {
      idle(self);
    }
  }
  settle(self);
}

Task* HostPool::find(Worker& self) {
  Task* task = nullptr;
  if (self.queue.top() > 0 && self.queue.pop(&task, 1)) return task;
  if (self.batch_next < self.batch_count) return next_of_batch(self);
  if (self.queue.pop(&task, 1)) return task;
  return steal(self);
}

Task* HostPool::next_of_batch(Worker& self) {
  if (self.batch_next + fetched_ahead < self.batch_count)
    fetch_ahead(self.batch[self.batch_next + fetched_ahead]);
  return self.batch[self.batch_next++];
}

Task* HostPool::steal(Worker& self) {
  double total = 0;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    self.queued[i] = static_cast<int>(i) == self.index ? 0 : workers_[i]->queue.size();
    total += self.queued[i];
  }
  if (total == 0) return nullptr;
  const StealQuestion question{static_cast<DeviceId>(self.index), self.queued};
  std::size_t victim = self.policy->victim(question);
  // Whoever is idle looks somewhere: what lies in the submitter's queue runs nowhere else.
  if (victim == workers_.size())
    victim = static_cast<std::size_t>(std::ranges::max_element(self.queued) - self.queued.begin());
  const auto there = static_cast<std::size_t>(self.queued[victim]);
  const std::size_t fair = there / (2 * (workers_.size() - 1));
  self.batch_count =
      workers_[victim]->queue.pop(self.batch, std::clamp<std::size_t>(fair, 1, batch_size));
  self.batch_next = 0;
  if (self.batch_count == 0) return nullptr;
  const Task& first = *self.batch[0];
  if (victim + 1 != workers_.size())
    recorder_.mark(self.lane, Mark::steal, no_tile, first.id, recorder_.tracing() ? now() : 0);
  if (there > self.batch_count && sleepers_.load(std::memory_order_relaxed) > 0 &&
      searching_.load(std::memory_order_relaxed) == 0)
    wake_sleeper();
  for (std::size_t i = 1; i < std::min(fetched_ahead, self.batch_count); ++i)
    fetch_ahead(self.batch[i]);
  return next_of_batch(self);
}

void HostPool::settle(Worker& self) {
  graph_.flush(self.free);
  if (self.tasks == 0) return;
  recorder_.kernels(self.lane, self.tasks, clock_now() - self.since, now());
  self.tasks = 0;
}

void HostPool::idle(Worker& self) {
  const auto work_somewhere = [&] {
    for (const auto& worker : workers_)
      if (worker->queue.size() > 0) return true;
    return false;
  };
  settle(self);
  searching_.fetch_add(1, std::memory_order_seq_cst);
  // Work that comes in quick succession is met awake: sleeping and waking cost microseconds.
  constexpr int pauses = 100;
  constexpr int yields = 60;
  // A yield that takes longer than waking gave the core to other programs, and the next would too.
  constexpr Nanoseconds most = 200'000;
  Nanoseconds before = 0;
  for (int spin = 0; spin < pauses + yields; ++spin) {
    if (work_somewhere()) {
      searching_.fetch_sub(1, std::memory_order_seq_cst);
      return;
    }
    if (spin < pauses) {
      pause_briefly();
      continue;
    }
    const Nanoseconds begin = clock_now();
    if (before > 0 && begin - before > most) break;
    before = begin;
    std::this_thread::yield();
  }
  searching_.fetch_sub(1, std::memory_order_seq_cst);
  if (waiters_.load(std::memory_order_seq_cst) > 0) notify_waiters();
  const std::uint32_t seen = wakeups_.load(std::memory_order_seq_cst);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  if (!work_somewhere() && !stopping_.load(std::memory_order_seq_cst)) wakeups_.wait(seen);
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

Task* HostPool::run(Worker& self, Task& task) {
  if (task.has_commute && !take_commuting(task)) return nullptr;
  execute(self, task);
  if (task.has_commute) release_commuting(self, task);
  if (task.children.load(std::memory_order_acquire) != 1 &&
      task.children.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return nullptr;  // its last child finishes it
  return finish(self, task);
}

void HostPool::execute(Worker& self, Task& task) {
  const bool tracing = recorder_.tracing();
  if (self.tasks == 0 && !tracing) self.since = clock_now();
  const Nanoseconds begin = tracing ? now() : 0;
  if (cancelled_.load(std::memory_order_relaxed) || task.cancelled()) {
    failures_.record(task,
                     std::make_exception_ptr(Error(Errc::cancelled, "the work was cancelled")),
                     device_name_);
    poison(task);
    return;
  }
  if (failures_.any() && poisoned_operand(task)) {
    failures_.record(task, nullptr, device_name_);
    poison(task);
    return;
  }
  constexpr int most = 8;
  View few[most];
  std::vector<View> many;
  View* views = few;
  if (task.operand_count > most) {
    many.resize(task.operand_count);
    views = many.data();
  }
  for (int i = 0; i < task.operand_count; ++i) {
    const Datum& datum = *task.operands[i].datum;
    views[i] = {datum.home, datum.rows, datum.cols, datum.ld, datum.dtype};
  }
  if (failures_.any())  // before the body: a child of the task may poison what it wrote
    for (OperandSlot& slot : task.slots())
      if (slot.access == Access::write)
        slot.datum->poisoned.store(false, std::memory_order_release);
  const Arguments arguments{{views, task.operand_count}, task.params(), nullptr};
  try {
    if (is_detached(*task.codelet)) [[unlikely]] {
      run_detached(task, arguments);
    } else {
      const RunningTask running(graph_, &task);
      run_body(graph_, task, task.codelet->cpu, arguments);
    }
  } catch (...) {
    failures_.record(task, std::current_exception(), device_name_);
    poison(task);
  }
  if (tracing)
    recorder_.kernel(self.lane, task, begin, now());
  else
    ++self.tasks;
}

void HostPool::run_detached(Task& task, const Arguments& arguments) {
  task.children.fetch_add(1, std::memory_order_relaxed);
  quadriga::run_detached(*this, &blocking_, graph_, task, arguments);
}

void HostPool::kept(Task& task, std::uint64_t, std::exception_ptr error) {
  if (error) {
    failures_.record(task, std::move(error), device_name_);
    poison(task);
  }
  if (task.children.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  std::unique_lock lock(guest_lock_, std::defer_lock);
  Worker* self = own();
  if (!self) {
    lock.lock();
    self = workers_.back().get();
  }
  if (Task* const next = finish(*self, task)) push(*self, *next);
  graph_.flush(self->free);
  if (waiters_.load(std::memory_order_seq_cst) > 0) notify_waiters();
}

Task* HostPool::finish(Worker& self, Task& task) {
  Task* next = nullptr;
  Task* const parent = task.parent();
  TaskGroup* const group = std::exchange(task.group, nullptr);
  graph_.ended(task, nullptr, [&](Task& successor, std::uint64_t) {
    Task* other = &successor;
    if (!next || other->priority > next->priority) std::swap(next, other);
    if (other) push(self, *other);
  });
  graph_.release(&task, self.free);
  self.ended.store(self.ended.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (group) group->task_ended();
  if (parent && parent->children.fetch_sub(1, std::memory_order_acq_rel) == 1)
    if (Task* const after = finish(self, *parent)) push(self, *after);
  if (next && self.queue.top() > next->priority) {
    push(self, *next);
    next = nullptr;
  }
  return next;
}

bool HostPool::take_commuting(Task& task) {
  const auto is_exclusive = [](const OperandSlot& slot) {
    return slot.access == Access::commute || slot.access == Access::reduce;
  };
  const auto try_all = [&] {
    int taken = 0;
    for (; taken < task.operand_count; ++taken) {
      OperandSlot& slot = task.operands[taken];
      if (is_exclusive(slot) && slot.datum->busy.exchange(true, std::memory_order_seq_cst)) break;
    }
    if (taken == task.operand_count) return true;
    while (taken-- > 0)
      if (is_exclusive(task.operands[taken]))
        task.operands[taken].datum->busy.store(false, std::memory_order_seq_cst);
    return false;
  };
  if (try_all()) return true;
  std::lock_guard lock(blocked_mutex_);
  blocked_count_.fetch_add(1, std::memory_order_seq_cst);
  if (try_all()) {
    blocked_count_.fetch_sub(1, std::memory_order_seq_cst);
    return true;
  }
  blocked_.push_back(&task);
  return false;
}

void HostPool::release_commuting(Worker& self, Task& task) {
  for (OperandSlot& slot : task.slots())
    if (slot.access == Access::commute || slot.access == Access::reduce)
      slot.datum->busy.store(false, std::memory_order_seq_cst);
  if (blocked_count_.load(std::memory_order_seq_cst) == 0) return;
  std::lock_guard lock(blocked_mutex_);
  for (Task* blocked : blocked_) push(self, *blocked);
  blocked_count_.fetch_sub(static_cast<int>(blocked_.size()), std::memory_order_seq_cst);
  blocked_.clear();
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
  std::lock_guard lock(guest_lock_);
  Worker& guest = *workers_.back();
  void* const pool = std::exchange(running_pool, this);
  void* const worker = std::exchange(running_worker, &guest);
  Task* task = nullptr;
  int count = 0;
  for (; count < most; ++count) {
    if (!task) task = find(guest);
    if (!task) break;
    task = run(guest, *task);
  }
  if (task) push(guest, *task);
  while (guest.batch_next < guest.batch_count) push(guest, *guest.batch[guest.batch_next++]);
  settle(guest);
  running_pool = pool;
  running_worker = worker;
  return count > 0;
}

}  // namespace quadriga
