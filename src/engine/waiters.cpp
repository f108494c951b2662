// SPDX-License-Identifier: BSD-3-Clause
// src/engine/waiters.cpp: waiting for an executor, and writing to the log.
#include "engine/waiters.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "engine/brief_search.h"

namespace quadriga {

/// One of those that wait, while it lives.
class Waiters::Waiting {
 public:
  Waiting(Waiters& all, const Condition* quick) : all_(all), quick_(quick) {
    const std::lock_guard lock(all_.mutex_);
    if (quick_)
      all_.quick_.push_back(quick_);
    else
      ++all_.others_;
    ++all_.count_;
  }
  ~Waiting() {
    const std::lock_guard lock(all_.mutex_);
    --all_.count_;
    if (quick_)
      all_.quick_.erase(std::ranges::find(all_.quick_, quick_));
    else
      --all_.others_;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  Waiters& all_;
  const Condition* const quick_;
};

bool Waiters::sleep_until(const Condition& condition, Nanoseconds deadline,
                          const Condition* quick) {
  constexpr Nanoseconds longest_pause = 1'000'000;
  Nanoseconds pause = 50'000;
  if (now_() < deadline && search_briefly(condition, now_)) return true;
  const Waiting waiting(*this, quick);
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
  const auto holds = [](const Condition* condition) { return (*condition)(); };
  if (others_ == 0 && std::ranges::none_of(quick_, holds)) return;
  ++signals_;
  changed_.notify_all();
}

void Waiters::wake_all() {
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
