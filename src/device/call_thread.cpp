// SPDX-License-Identifier: BSD-3-Clause
// src/device/call_thread.cpp: the thread, and how calls come to it.
#include "device/call_thread.h"

#include <utility>

#include "base/thread.h"

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

void CallThread::add(std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    if (!thread_.joinable()) thread_ = start_thread("quadriga caller", [this] { run(); });
    waiting_.push_back(std::move(call));
  }
  changed_.notify_one();
}

void CallThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const std::function<void()> call = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    call();
    lock.lock();
  }
}

}  // namespace quadriga
