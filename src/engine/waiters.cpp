// SPDX-License-Identifier: BSD-3-Clause
// src/engine/waiters.cpp: waiting for an executor, and writing to the log.
#include "engine/waiters.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "engine/brief_search.h"

namespace quadriga {

namespace {

/// Counts a thread while it lives.
class Counted {
 public:
  explicit Counted(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int>& count_;
};

}  // namespace

bool Waiters::sleep_until(const std::function<bool()>& condition, Nanoseconds deadline) {
  constexpr Nanoseconds longest_pause = 1'000'000;
  Nanoseconds pause = 50'000;
  if (now_() < deadline && search_briefly(condition, now_)) return true;
  const Counted counted(count_);
  std::unique_lock lock(mutex_);
  while (true) {
    const std::uint64_t seen = signals_;
    lock.unlock();
    if (condition()) return true;
    const Nanoseconds now = now_();
    if (now >= deadline) return false;
    lock.lock();
    changed_.wait_for(lock, std::chrono::nanoseconds(std::min(pause, deadline - now)),
                      [&] { return signals_ != seen; });
    pause = std::min(pause * 2, longest_pause);
  }
}

void Waiters::signal() {
  if (count_ == 0) return;
  const std::lock_guard lock(mutex_);
  ++signals_;
  changed_.notify_all();
}

void Waiters::notice(std::string text) {
  const std::lock_guard lock(mutex_);
  notices_.push_back(std::move(text));
}

void Waiters::tell_notices() {
  std::vector<std::string> notices;
  {
    const std::lock_guard lock(mutex_);
    notices.swap(notices_);
  }
  for (const std::string& text : notices) log(LogLevel::warning, text);
}

}  // namespace quadriga
