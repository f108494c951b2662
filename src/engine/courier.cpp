// SPDX-License-Identifier: BSD-3-Clause
// src/engine/courier.cpp: starts, ends, deadlines, and the thread that waits for messages.
#include "engine/courier.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <utility>

#include "base/thread.h"
#include "engine/message_lane.h"

namespace quadriga {
namespace {

using Clock = std::chrono::steady_clock;

std::exception_ptr cancelled_error(const MessageTask& task) {
  return std::make_exception_ptr(Error(Errc::cancelled, task.name + ": the work was cancelled"));
}

bool is_cancelled(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return known.code() == Errc::cancelled;
  } catch (...) {
    return false;
  }
}

/// A receive fills its data: what a shorter message leaves is nobody's content.
std::exception_ptr fault_of(const MessageTask& task, const message::MessageStatus& status) {
  const std::size_t wanted = task.places.front().bytes();
  if (task.sends() || status.bytes == wanted) return nullptr;
  return std::make_exception_ptr(
      Error(Errc::invalid_argument, fmt::format("{}: the message has {} bytes and the data {}; "
                                                "expected as many, for a task's receive fills "
                                                "its data",
                                                task.name, status.bytes, wanted)));
}

}  // namespace

Courier::Courier(std::shared_ptr<message::Endpoint> endpoint, std::function<Nanoseconds()> now,
                 Told told)
    : endpoint_(std::move(endpoint)), now_(std::move(now)), told_(std::move(told)) {
  thread_ = start_thread("quadriga tasks", [this] { run(); });
}

Courier::~Courier() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Courier::hold(const MessageTaskPtr& task) {
  const std::lock_guard lock(mutex_);
  if (!task->refused && cancelled_) task->refused = cancelled_error(*task);
  if (task->refused) std::rethrow_exception(task->refused);
  task->state = MessageTask::State::held;
  tasks_.push_back(task);
}

void Courier::begin_collective(const MessageTaskPtr& task) {
  const std::lock_guard lock(mutex_);
  if (task->refused) std::rethrow_exception(task->refused);
  task->ran = true;
  tasks_.push_back(task);
  task->state = MessageTask::State::started;
  task->begin = Clock::now();
  task->started = now_();
}

void Courier::end_collective(const MessageTaskPtr& task, bool failed) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(tasks_, task);
    task->state = MessageTask::State::over;
  }
  told_(*task, failed);
}

void Courier::start(const MessageTaskPtr& task) {
  bool is_refused = false;
  {
    const std::lock_guard lock(mutex_);
    task->state = MessageTask::State::started;
    task->begin = Clock::now();
    task->started = now_();
    is_refused = task->refused != nullptr;
  }
  std::shared_ptr<void> keep(task.get(), [this, held = task](void*) mutable {
    arrive(std::move(held));  // the last that refers to it here, see end()
  });
  message::TransferPtr transfer;
  std::exception_ptr fault;
  if (!is_refused) {
    const message::CommunicatorCore& comm = task->lane->messages();
    const message::MessageBuffer& place = task->places.front();
    try {
      transfer = task->sends()
                     ? comm.start_send(place, task->call.peer, task->call.tag, std::move(keep))
                     : comm.start_receive(place, task->call.peer, task->call.tag, std::move(keep));
    } catch (...) {
      fault = std::current_exception();
    }
  }
  keep.reset();
  {
    const std::lock_guard lock(mutex_);
    task->transfer = transfer;
    if (fault) task->refused = fault;
    is_refused = task->refused != nullptr;
  }
  arrive(task);
  if (!transfer || transfer->done) return;
  changed_.notify_all();
  try {
    // What lies in a ring is seen by who looks.
    if (is_refused)
      endpoint_->cancel(transfer);
    else
      endpoint_->test(transfer);
  } catch (const std::exception&) {
    // It has ended so; its task tells.
  }
}

void Courier::arrive(MessageTaskPtr task) {
  if (task->met.exchange(true)) end(std::move(task));
}

void Courier::end(MessageTaskPtr task) {
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    std::erase(tasks_, task);
    task->state = MessageTask::State::over;
    const message::TransferPtr transfer = std::exchange(task->transfer, nullptr);
    error = transfer ? transfer->error : task->refused;
    if (error && task->refused && is_cancelled(error)) error = task->refused;
    if (transfer && !error) {
      task->status = transfer->status;
      if (task->sends()) task->status.bytes = transfer->place.bytes();
      error = fault_of(*task, task->status);
      task->has_status = !error && !task->sends();
    }
  }
  told_(*task, error != nullptr);
  const Promise promise = std::move(task->promise);
  const auto reopen = std::exchange(task->reopen, nullptr);
  if (reopen) task->fault = error;
  std::atomic<bool>& has_come = task->has_come;
  // Whoever holds a communicator last ends it, which this thread may not.
  task.reset();
  if (reopen)
    reopen(has_come);
  else if (error)
    promise.set_exception(std::move(error));
  else
    promise.set_value();
}

bool Courier::refuse(const MessageTaskPtr& task, const std::exception_ptr& why) {
  message::TransferPtr transfer;
  {
    const std::lock_guard lock(mutex_);
    if (task->state == MessageTask::State::over || task->refused) return false;
    if (task->is_collective() && task->ran) return false;
    task->refused = why;
    if (task->state == MessageTask::State::submitted) return true;
    transfer = task->transfer;
  }
  if (transfer) return endpoint_->cancel(transfer);
  // Whoever starts it meets the refusal.
  if (!task->lane->leave(*task)) return true;
  end(task);
  later([lane = task->lane] { lane->start(); });
  return true;
}

void Courier::cancel(bool on) {
  std::vector<MessageTaskPtr> all;
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = on;
    if (on) all = tasks_;
  }
  for (const MessageTaskPtr& each : all) refuse(each, cancelled_error(*each));
}

void Courier::later(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    later_.push_back(std::move(work));
  }
  changed_.notify_all();
}

/// One that the endpoint moves.
MessageTaskPtr Courier::open_task() const {
  for (const MessageTaskPtr& each : tasks_)
    if (each->transfer && !each->transfer->done) return each;
  return nullptr;
}

void Courier::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    MessageTaskPtr task;
    changed_.wait(lock,
                  [&] { return stopping_ || !later_.empty() || (task = open_task()) != nullptr; });
    run_later(lock);
    if (stopping_ && later_.empty()) return;
    task = open_task();
    if (!task) continue;
    const message::TransferPtr transfer = task->transfer;
    task.reset();
    lock.unlock();
    try {
      endpoint_->wait(transfer, {-1, [this] { look(); }, {}});
    } catch (...) {
      // Its task tells.
    }
    lock.lock();
  }
}

void Courier::run_later(std::unique_lock<std::mutex>& lock) {
  while (!later_.empty()) {
    const auto work = std::exchange(later_, {});
    lock.unlock();
    for (const auto& each : work) each();
    lock.lock();
  }
}

/// Called by the thread while it waits.
void Courier::look() {
  std::vector<std::pair<MessageTaskPtr, message::TransferPtr>> late;
  {
    std::unique_lock lock(mutex_);
    run_later(lock);
    const auto now = Clock::now();
    for (const MessageTaskPtr& each : tasks_) {
      const double seconds = each->call.seconds;
      if (each->transfer && seconds >= 0 && !each->refused &&
          std::chrono::duration<double>(now - each->begin).count() >= seconds)
        late.emplace_back(each, each->transfer);
    }
  }
  for (const auto& [task, transfer] : late) {
    try {
      // Says what all ranks wait for.
      endpoint_->wait(transfer, {task->call.seconds, {}, task->begin});
    } catch (const Error& error) {
      if (error.code() == Errc::deadline) refuse(task, std::current_exception());
    }
  }
}

std::string Courier::status() {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const MessageTaskPtr& each : tasks_) {
    const std::chrono::duration<double> since = Clock::now() - each->begin;
    text += fmt::format("  {}, tag {}, {} bytes, task {}: {}\n", each->name,
                        each->call.tag < 0 ? "any" : std::to_string(each->call.tag),
                        each->places.empty() ? 0 : each->places.front().bytes(), each->id,
                        each->state == MessageTask::State::held
                            ? "waits for its turn"
                            : fmt::format("since {:.1f} s", since.count()));
  }
  return text;
}

}  // namespace quadriga
