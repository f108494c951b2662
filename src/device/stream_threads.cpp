// SPDX-License-Identifier: BSD-3-Clause
// src/device/stream_threads.cpp: the threads, and how kernels get their slots.
#include "device/stream_threads.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <sys/prctl.h>

#include <algorithm>

#include "base/thread.h"

namespace quadriga {

StreamThreads::StreamThreads(const Machine& machine, int cores, Copier copier)
    : machine_(machine),
      cores_(std::max(cores, 1)),
      copier_(std::move(copier)),
      queues_(machine),
      running_(machine.devices.size(), 0) {}

StreamThreads::~StreamThreads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true);
    for (Stream& stream : streams_) stream.changed.notify_all();
  }
  for (Stream& stream : streams_) {
    if (stream.thread.joinable()) stream.thread.join();
  }
}

StreamId StreamThreads::create_stream(DeviceId device, StreamKind kind) {
  checked_device(machine_, device);
  const std::lock_guard lock(mutex_);
  Stream& stream = streams_.emplace_back();
  stream.id = static_cast<StreamId>(streams_.size() - 1);
  stream.device = device;
  stream.place = queues_.add_stream(device);
  stream.kind = kind;
  return stream.id;
}

Event StreamThreads::enqueue(StreamId id, Operation operation) {
  const std::lock_guard lock(mutex_);
  check_stream(id, streams_.size());
  Stream& stream = streams_[id];
  const std::exception_ptr refused = start(stream);
  ++sequence_;
  if (!refused) queues_.push(stream.place, kind_of(operation), sequence_);
  stream.queue.push({std::move(operation), sequence_, refused});
  const Event made{id, ++stream.issued};
  stream.changed.notify_one();
  if (refused) pass_front(stream);
  return made;
}

/// What kept its thread from starting.
std::exception_ptr StreamThreads::start(Stream& stream) {
  if (stream.thread.joinable()) return nullptr;
  try {
    stream.thread = start_thread("quadriga stream", [this, &stream] { run(stream); });
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void StreamThreads::wait(StreamId id, Event event) {
  const std::lock_guard lock(mutex_);
  check_stream(id, streams_.size());
  if (!event) return;
  check_stream(event.stream, streams_.size());
  const Stream& source = streams_[event.stream];
  if (event.ticket > source.issued) {
    fail(Errc::invalid_argument,
         fmt::format("stream {} has made no event {} yet", event.stream, event.ticket));
  }
  if (event.stream == id || event.ticket <= source.ended) return;
  streams_[id].queue.push({event, 0});
}

std::size_t StreamThreads::next_completion(std::span<Completion> out, Nanoseconds deadline) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return !completions_.empty() || woken_; };
  if (deadline >= never / 2) {  // Later, sums of times would overflow.
    ended_.wait(lock, ready);
  } else if (deadline > now()) {  // A wait until the past sets a timer: many times a look's cost.
    ended_.wait_until(lock, start_ + std::chrono::nanoseconds(deadline), ready);
  }
  woken_ = false;
  std::size_t count = 0;
  while (count < out.size() && !completions_.empty()) out[count++] = completions_.pop();
  return count;
}

void StreamThreads::wake() noexcept {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  ended_.notify_all();
}

bool StreamThreads::tell(std::function<void()> ended) {
  const std::lock_guard lock(mutex_);
  tell_ = std::move(ended);
  return true;
}

Nanoseconds StreamThreads::now() const noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
}

void StreamThreads::run(Stream& stream) {
  // Paced copies sleep for less than the usual slack of 50 us.
  ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
  std::unique_lock lock(mutex_);
  while (wait_for_operation(lock, stream)) {
    Completion completion;
    completion.begin = now();
    const Operation operation = stream.queue.front().operation;
    lock.unlock();
    completion.error = carry_out(operation);
    lock.lock();
    if (stopping_.load()) return;
    finish(stream, operation, std::move(completion));
  }
}

// False: time to stop.
bool StreamThreads::wait_for_operation(std::unique_lock<std::mutex>& lock, Stream& stream) {
  while (!stopping_.load()) {
    if (front_can_run(stream)) return true;
    stream.changed.wait(lock);
  }
  return false;
}

// Passes waits at the front, and operations that were refused; true if there is one then that may
// be admitted.
bool StreamThreads::pass_front(Stream& stream) {
  while (!stream.queue.empty()) {
    if (const std::exception_ptr refused = stream.queue.front().refused) {
      stream.queue.pop();
      deliver(stream, {{}, now(), now(), refused});
      continue;
    }
    const Event* event = std::get_if<Event>(&stream.queue.front().operation);
    if (event == nullptr) return true;
    Stream& source = streams_[event->stream];
    if (source.ended < event->ticket) {
      if (stream.awaited != *event) source.waiters.push_back(&stream);
      stream.awaited = *event;
      return false;
    }
    stream.awaited = {};
    stream.queue.pop();
  }
  return false;
}

// Asks whether what is at the front may run.
bool StreamThreads::front_can_run(Stream& stream) {
  if (!pass_front(stream)) return false;
  if (!stream.admitted) {
    if (!stream.pending) pending_.push_back(&stream);
    stream.pending = true;
    admit();
  }
  return stream.admitted;
}

bool StreamThreads::can_begin(const Stream& stream) const {
  const Queued& front = stream.queue.front();
  return has_slot(stream) &&
         queues_.can_begin(stream.place, kind_of(front.operation), front.sequence);
}

bool StreamThreads::has_slot(const Stream& stream) const {
  const int slots = std::max(1, machine_.devices[stream.device].compute_streams);
  const int needed = slots_of(stream.queue.front().operation);
  return all_running_ + needed <= cores_ && running_[stream.device] + needed <= slots;
}

int StreamThreads::slots_of(const Operation& operation) {
  const Launch* const launch = std::get_if<Launch>(&operation);
  return launch != nullptr && !launch->meets ? 1 : 0;
}

std::vector<StreamThreads::Stream*>::iterator StreamThreads::next_pending() {
  auto best = pending_.end();
  const auto rank = [](const Stream& stream) {
    return std::pair(stream.kind != StreamKind::panel, stream.queue.front().sequence);
  };
  for (auto each = pending_.begin(); each != pending_.end(); ++each) {
    if (!can_begin(**each)) continue;
    if (best == pending_.end() || rank(**each) < rank(**best)) best = each;
  }
  return best;
}

void StreamThreads::admit() {
  for (auto next = next_pending(); next != pending_.end(); next = next_pending()) {
    Stream& stream = **next;
    pending_.erase(next);
    stream.pending = false;
    stream.admitted = true;
    const Operation& operation = stream.queue.front().operation;
    queues_.begin(stream.place, kind_of(operation));
    const int slots = slots_of(operation);
    running_[stream.device] += slots;
    all_running_ += slots;
    stream.changed.notify_one();
  }
}

std::exception_ptr StreamThreads::carry_out(const Operation& operation) noexcept {
  try {
    if (const Copy* copy = std::get_if<Copy>(&operation)) copier_(*copy, stopping_);
    if (const Launch* launch = std::get_if<Launch>(&operation)) {
      (*launch->kernel)(launch->arguments);
    }
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void StreamThreads::finish(Stream& stream, const Operation& operation, Completion completion) {
  stream.queue.pop();
  stream.admitted = false;
  queues_.end(stream.place, kind_of(operation));
  running_[stream.device] -= slots_of(operation);
  all_running_ -= slots_of(operation);
  deliver(stream, std::move(completion));
  admit();
}

void StreamThreads::deliver(Stream& stream, Completion completion) {
  completion.event = {stream.id, ++stream.ended};
  completion.end = now();
  completions_.push(std::move(completion));
  ended_.notify_one();
  if (tell_) tell_();
  notify_waiters(stream);
}

void StreamThreads::notify_waiters(Stream& source) {
  std::vector<Stream*> refused;
  std::erase_if(source.waiters, [&](Stream* waiter) {
    if (waiter->awaited.ticket > source.ended) return false;
    waiter->awaited = {};
    waiter->changed.notify_one();
    if (!waiter->thread.joinable()) refused.push_back(waiter);
    return true;
  });
  for (Stream* const each : refused) pass_front(*each);
}

}  // namespace quadriga
