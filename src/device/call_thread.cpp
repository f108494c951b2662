// SPDX-License-Identifier: BSD-3-Clause
// src/device/call_thread.cpp: the thread, and how calls come to it and go.
#include "device/call_thread.h"

#include <utility>

namespace quadriga {

CallThread::~CallThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    waiting_.clear();
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void CallThread::add(std::uint32_t id, std::function<void()> call) {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({id, std::move(call)});
  }
  changed_.notify_one();
}

std::optional<CallThread::Ended> CallThread::take() {
  const std::lock_guard lock(mutex_);
  if (ended_.empty()) return std::nullopt;
  Ended ended = std::move(ended_.front());
  ended_.pop_front();
  return ended;
}

void CallThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    Call call = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Ended ended{call.id, nullptr};
    try {
      call.function();
    } catch (...) {
      ended.error = std::current_exception();
    }
    call.function = nullptr;  // what it holds goes before its end is known
    lock.lock();
    ended_.push_back(std::move(ended));
    lock.unlock();
    notify_();
    lock.lock();
  }
}

}  // namespace quadriga
