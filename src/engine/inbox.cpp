// SPDX-License-Identifier: BSD-3-Clause
// src/engine/inbox.cpp: messages and requests, and their end.
#include "engine/inbox.h"

#include <utility>

#include "engine/brief_search.h"

namespace quadriga {
namespace {

Nanoseconds steady_now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void DriverRequest::answer(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  answered_ = true;
  changed_.notify_all();
}

void DriverRequest::await() const {
  search_briefly([&] { return answered_.load(std::memory_order_acquire); }, steady_now);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return answered_.load(); });
  if (error_) std::rethrow_exception(error_);
}

bool DriverRequest::await_for(std::chrono::nanoseconds time) const {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, time, [&] { return answered_.load(); })) return false;
  if (error_) std::rethrow_exception(error_);
  return true;
}

bool Inbox::post(const Message& message) {
  bool was_empty;
  {
    const std::lock_guard lock(mutex_);
    was_empty = messages_.empty();
    messages_.push_back(message);
    if (was_empty) has_messages_.store(true, std::memory_order_release);
  }
  if (was_empty) arrived_.notify_all();
  return was_empty;
}

void Inbox::post(std::shared_ptr<DriverRequest> request) {
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  requests_.push_back(std::move(request));
  has_requests_.store(true, std::memory_order_release);
}

void Inbox::take(std::vector<Message>& messages) {
  if (!has_messages()) return;
  const std::lock_guard lock(mutex_);
  messages.swap(messages_);
  has_messages_.store(false, std::memory_order_release);
}

std::vector<std::shared_ptr<DriverRequest>> Inbox::take_requests() {
  if (!has_requests_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  retried_ = 0;
  has_requests_.store(false, std::memory_order_release);
  return std::exchange(requests_, {});
}

void Inbox::put_back(std::vector<std::shared_ptr<DriverRequest>> requests) {
  std::exception_ptr broken;
  {
    const std::lock_guard lock(mutex_);
    broken = broken_;
    if (!broken) {
      retried_ += requests.size();
      requests_.insert(requests_.begin(), requests.begin(), requests.end());
      has_requests_.store(!requests_.empty(), std::memory_order_release);
    }
  }
  if (broken)
    for (const std::shared_ptr<DriverRequest>& each : requests) each->answer(broken);
}

bool Inbox::empty() {
  if (has_messages()) return false;
  if (!has_requests_.load(std::memory_order_acquire)) return true;
  const std::lock_guard lock(mutex_);
  return messages_.empty() && requests_.size() == retried_;
}

void Inbox::wait_for(std::chrono::milliseconds a_while) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, a_while, [&] { return !messages_.empty(); });
}

void Inbox::break_down(std::exception_ptr error) {
  std::vector<std::shared_ptr<DriverRequest>> requests;
  {
    const std::lock_guard lock(mutex_);
    broken_ = error;
    is_broken_.store(true, std::memory_order_release);
    requests.swap(requests_);
    has_requests_.store(false, std::memory_order_release);
    retried_ = 0;
  }
  for (const std::shared_ptr<DriverRequest>& request : requests) request->answer(error);
}

void Inbox::rethrow_if_broken() {
  if (!is_broken()) return;
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
}

}  // namespace quadriga
