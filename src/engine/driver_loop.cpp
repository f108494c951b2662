// SPDX-License-Identifier: BSD-3-Clause
// src/engine/driver_loop.cpp: what a step does, in its order.
#include "engine/driver_loop.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace quadriga {

void DriverLoop::take_messages() {
  if (const bool on = cancels_.load(std::memory_order_acquire); on != is_cancelled_)
    parts_.scheduler.cancel(is_cancelled_ = on);
  parts_.inbox.take(taken_);
  for (const Message& message : taken_) take(message);
  taken_.clear();
  settle();
}

void DriverLoop::take(const Message& message) {
  Task* const task = message.task;
  switch (message.kind) {
    case Message::Kind::data:
      parts_.scheduler.add(*message.datum);
      break;
    case Message::Kind::submitted:
      parts_.record.submitted();
      parts_.scheduler.submitted(*task, cost_of(*task));
      break;
    case Message::Kind::ready:
      // It may have ended meanwhile, and its slot be another's.
      if (task->planned && task->id == message.id)
        parts_.scheduler.ready(*task, task->pending.load(std::memory_order_acquire) == 0
                                          ? Predecessors::done
                                          : Predecessors::issued);
      break;
    case Message::Kind::final:
      parts_.scheduler.final(*message.datum);
      break;
    case Message::Kind::kept:
      if (task->planned && task->id == message.id) parts_.scheduler.kept(*task, message.error);
      break;
  }
}

Cost DriverLoop::cost_of(const Task& task) {
  if (!task.codelet->cost) return {};
  views_.clear();
  for (int i = 0; i < task.operand_count; ++i) {
    const Datum& datum = *task.operands[i].datum;
    views_.push_back({nullptr, datum.rows, datum.cols, datum.rows, datum.dtype});
  }
  return task.codelet->cost({views_, task.params(), nullptr});
}

bool DriverLoop::run_requests() {
  std::vector<std::shared_ptr<DriverRequest>> requests = parts_.inbox.take_requests();
  if (requests.empty()) return false;
  take_messages();  // of the data that they are about
  std::size_t left = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    try {
      const bool is_done = !requests[i]->is_withdrawn() && requests[i]->run();
      settle();
      if (is_done)
        requests[i]->answer(nullptr);
      else if (!requests[i]->is_withdrawn())
        requests[left++].swap(requests[i]);
    } catch (...) {
      for (std::size_t k = 0; k < requests.size(); ++k)
        if (k < left || k >= i) requests[k]->answer(std::current_exception());
      throw;
    }
  }
  const bool any_done = left < requests.size();
  requests.resize(left);
  parts_.inbox.put_back(std::move(requests));
  return any_done;
}

/// Lets the scheduler decide until there is nothing left before the next event; true if it
/// did something.
bool DriverLoop::decide() {
  bool happened = false;
  parts_.scheduler.begin_steps();
  while (parts_.scheduler.step()) {
    happened = true;
    settle();
  }
  settle();
  if (happened || parts_.scheduler.is_moving() || !parts_.scheduler.resolve_standstill())
    return happened;
  settle();
  return true;
}

bool DriverLoop::step(Nanoseconds deadline) {
  take_messages();
  // A request may have taken what the caller of this step waits for.
  const bool has_run = run_requests();
  const std::uint64_t left = parts_.releases.left();
  bool happened = decide();
  // No completion tells of tasks that failed instead of being issued, nor of what they made ready.
  const bool any_left = parts_.releases.left() != left;
  if (any_left) {
    happened = true;
    parts_.releases.flush();
    parts_.waiters.signal();
  }
  if (any_left || has_run || parts_.scheduler.has_more() || !parts_.inbox.empty())
    deadline = std::min(deadline, parts_.clock.now());
  if (is_virtual_ && !parts_.scheduler.in_flight()) return happened;
  return take_completions(deadline) > 0 || happened;
}

std::size_t DriverLoop::take_completions(Nanoseconds deadline) {
  const std::size_t count = parts_.issuers.next(completions_, deadline);
  for (std::size_t i = 0; i < count; ++i) {
    parts_.scheduler.ended(completions_[i]);
    settle();
  }
  parts_.releases.flush();
  if (count > 0) parts_.waiters.signal();
  return count;
}

void DriverLoop::settle() {
  // Before the graph is told of ends (invariant 4).
  if (const bool has = parts_.scheduler.has_lingering();
      has != has_lingering_.load(std::memory_order_relaxed))
    has_lingering_.store(has, std::memory_order_release);
  parts_.releases.settle(parts_.scheduler);
  parts_.issuers.take(parts_.instructions);
}

}  // namespace quadriga
