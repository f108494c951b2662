// SPDX-License-Identifier: BSD-3-Clause
// python/src/workers.cpp: who takes a job, and when a thread ends.
#include "workers.h"

#include <chrono>
#include <utility>

#include "base/process.h"
#include "base/thread.h"

namespace quadriga::python {
namespace {

constexpr std::chrono::seconds most_idle{10};

}  // namespace

Workers& Workers::here() {
  static Workers* mine = nullptr;
  static int owner = -1;
  if (owner != process_id()) {
    // A parent's threads didn't come along, and its mutex may be locked for ever.
    mine = new Workers;
    owner = process_id();
  }
  return *mine;
}

void Workers::start(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  if (idle_ <= jobs_.size()) start_thread("quadriga body", [this] { work(); }).detach();
  jobs_.push_back(std::move(job));
  available_.notify_one();
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    const bool came = available_.wait_for(lock, most_idle, [this] { return !jobs_.empty(); });
    --idle_;
    if (!came) return;
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    job = nullptr;  // what it held is let go before the thread is idle
    lock.lock();
  }
}

}  // namespace quadriga::python
