// SPDX-License-Identifier: BSD-3-Clause
// src/engine/inbox.cpp: messages and requests, and their end.
#include "engine/inbox.h"

#include <utility>

namespace quadriga {

void Request::answer(std::exception_ptr error) {
  error_ = std::move(error);
  answered_.store(true, std::memory_order_release);
  answered_.notify_all();
}

void Request::await() const {
  answered_.wait(false, std::memory_order_acquire);
  if (error_) std::rethrow_exception(error_);
}

bool Inbox::post(const Message& message) {
  bool was_empty;
  {
    const std::lock_guard lock(mutex_);
    was_empty = messages_.empty();
    messages_.push_back(message);
  }
  arrived_.notify_all();
  return was_empty;
}

void Inbox::post(std::shared_ptr<Request> request) {
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  requests_.push_back(std::move(request));
}

void Inbox::take(std::vector<Message>& messages) {
  const std::lock_guard lock(mutex_);
  messages.swap(messages_);
}

std::vector<std::shared_ptr<Request>> Inbox::take_requests() {
  const std::lock_guard lock(mutex_);
  return std::exchange(requests_, {});
}

bool Inbox::empty() {
  const std::lock_guard lock(mutex_);
  return messages_.empty() && requests_.empty();
}

bool Inbox::has_messages() {
  const std::lock_guard lock(mutex_);
  return !messages_.empty();
}

void Inbox::wait_for(std::chrono::milliseconds a_while) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, a_while, [&] { return !messages_.empty(); });
}

void Inbox::break_down(std::exception_ptr error) {
  std::vector<std::shared_ptr<Request>> requests;
  {
    const std::lock_guard lock(mutex_);
    broken_ = error;
    requests.swap(requests_);
  }
  for (const std::shared_ptr<Request>& request : requests) request->answer(error);
}

void Inbox::rethrow_if_broken() {
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
}

bool Inbox::is_broken() {
  const std::lock_guard lock(mutex_);
  return broken_ != nullptr;
}

}  // namespace quadriga
