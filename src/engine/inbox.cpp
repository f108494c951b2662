// SPDX-License-Identifier: BSD-3-Clause
// src/engine/inbox.cpp: messages and requests, and their end.
#include "engine/inbox.h"

#include <utility>

namespace quadriga {

void DriverRequest::answer(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  answered_ = true;
  changed_.notify_all();
}

void DriverRequest::await() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return answered_; });
  if (error_) std::rethrow_exception(error_);
}

bool DriverRequest::await_for(std::chrono::nanoseconds time) const {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, time, [&] { return answered_; })) return false;
  if (error_) std::rethrow_exception(error_);
  return true;
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

void Inbox::post(std::shared_ptr<DriverRequest> request) {
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  requests_.push_back(std::move(request));
}

void Inbox::take(std::vector<Message>& messages) {
  const std::lock_guard lock(mutex_);
  messages.swap(messages_);
}

std::vector<std::shared_ptr<DriverRequest>> Inbox::take_requests() {
  const std::lock_guard lock(mutex_);
  retried_ = 0;
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
    }
  }
  if (broken)
    for (const std::shared_ptr<DriverRequest>& each : requests) each->answer(broken);
}

bool Inbox::empty() {
  const std::lock_guard lock(mutex_);
  return messages_.empty() && requests_.size() == retried_;
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
  std::vector<std::shared_ptr<DriverRequest>> requests;
  {
    const std::lock_guard lock(mutex_);
    broken_ = error;
    requests.swap(requests_);
    retried_ = 0;
  }
  for (const std::shared_ptr<DriverRequest>& request : requests) request->answer(error);
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
