// SPDX-License-Identifier: BSD-3-Clause
// src/engine/message_lane.cpp: the turns of a communicator's messages.
#include "engine/message_lane.h"

#include <quadriga/error.h>

#include "engine/courier.h"

namespace quadriga {
namespace {

// Any number that nobody else uses.
constexpr std::uint64_t of_tasks = 0x7461736b73;

}  // namespace

MessageLane::MessageLane(const message::CommunicatorCore& communicator)
    : messages_(communicator), collectives_(communicator.apart(of_tasks)) {}

void MessageLane::enter(MessageTask& task) {
  if (task.is_collective()) return;
  const std::lock_guard lock(mutex_);
  task.number = order_of(task).enter(task.call.peer, task.call.tag);
}

void MessageLane::ready(const MessageTaskPtr& task) {
  {
    const std::lock_guard lock(mutex_);
    if (!order_of(*task).ready(task->number)) return;
    (task->sends() ? sends_held_ : receives_held_)[task->number] = task;
  }
  start();
}

bool MessageLane::leave(const MessageTask& task) {
  const std::lock_guard lock(mutex_);
  (task.sends() ? sends_held_ : receives_held_).erase(task.number);
  return order_of(task).leave(task.number);
}

void MessageLane::start() {
  std::unique_lock lock(mutex_);
  if (starting_) return;
  starting_ = true;
  while (true) {
    MessageTaskPtr task;
    // Receives first: what they wait for may be on its way.
    if (const auto receive = receives_.next())
      task = std::move(receives_held_.extract(*receive).mapped());
    else if (const auto send = sends_.next())
      task = std::move(sends_held_.extract(*send).mapped());
    if (!task) break;
    lock.unlock();
    task->courier->start(task);
    task.reset();
    lock.lock();
  }
  starting_ = false;
}

void MessageLane::refuse_second_engine() {
  fail(Errc::invalid_argument,
       "another engine has collectives of this communicator; Split() makes one for each engine");
}

}  // namespace quadriga
