// SPDX-License-Identifier: BSD-3-Clause
// src/engine/promises.cpp: promises, and threads that may wait.
#include "engine/promises.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/thread.h"
#include "engine/bodies.h"
#include "engine/executor.h"
#include "graph/device_side.h"

namespace quadriga {

class Promise::PromisedTask {
 public:
  PromisedTask(Executor& executor, Task& task) : executor_(executor), task_(task), id_(task.id) {}
  ~PromisedTask() {
    if (!open_) return;
    keep(std::make_exception_ptr(
        Error(Errc::task_failed,
              fmt::format("the promise of task {} was dropped: nobody can end it any more", id_))));
  }
  PromisedTask(const PromisedTask&) = delete;
  PromisedTask& operator=(const PromisedTask&) = delete;

  bool keep(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(open_, false)) return false;
    std::atomic<int>& keepers = executor_.keepers;
    keepers.fetch_add(1, std::memory_order_relaxed);
    executor_.kept(task_, id_, std::move(error));
    keepers.fetch_sub(1, std::memory_order_release);
    return true;
  }
  bool cancelled() {
    const std::lock_guard lock(mutex_);
    return open_ && (executor_.cancelled() || task_.cancelled());
  }

 private:
  Executor& executor_;
  Task& task_;
  const std::uint64_t id_;
  std::mutex mutex_;
  bool open_ = true;
};

class PromiseAccess {
 public:
  static Promise make(Executor& executor, Task& task) {
    return Promise(std::make_shared<Promise::PromisedTask>(executor, task));
  }
};

bool Promise::set_value() const { return state_ && state_->keep(nullptr); }

bool Promise::set_exception(std::exception_ptr error) const {
  return state_ && state_->keep(std::move(error));
}

bool Promise::cancelled() const { return state_ && state_->cancelled(); }

BlockingThreads::~BlockingThreads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

namespace {

/// Which of them this thread is one of, and whether it has left its place.
thread_local BlockingThreads* threads_here = nullptr;
thread_local bool has_left = false;

}  // namespace

/// Guarded by mutex_.
std::size_t BlockingThreads::places() const noexcept {
  const std::size_t busy = threads_.size() - idle_;
  return busy < most_ ? most_ - busy : 0;
}

/// For work, or a place, that has come. Guarded by mutex_.
void BlockingThreads::call_thread() {
  if (idle_ >= std::min(work_.size(), places())) return changed_.notify_one();
  try {
    threads_.emplace_back([this] { loop(); });
  } catch (const std::system_error& error) {
    refuse_thread(error);
  }
  ++idle_;
}

void BlockingThreads::leave_place() noexcept {
  BlockingThreads* const self = threads_here;
  if (!self || std::exchange(has_left, true)) return;
  const std::lock_guard lock(self->mutex_);
  ++self->most_;
  try {
    self->call_thread();
  } catch (const Error&) {
    // As in run(): one of the threads comes to it.
  }
}

void BlockingThreads::run(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  try {
    call_thread();
  } catch (const Error&) {
    if (!threads_.empty()) return;  // one of them comes to it
    work_.pop_back();
    throw;
  }
}

void BlockingThreads::loop() {
  threads_here = this;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || (!work_.empty() && places() > 0); });
    if (work_.empty()) return;
    --idle_;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
    if (std::exchange(has_left, false)) --most_;
    ++idle_;
  }
}

namespace {

/// Ends the task as its body does; one that detaches ends it itself, unless it throws.
void run_to_the_end(Graph& graph, Task& task, const Arguments& arguments, const Promise& promise,
                    bool has_own_thread) {
  const RunningTask running(graph, &task, !has_own_thread);
  const bool detaches = task.codelet->detaches;
  try {
    run_body(graph, task, task.codelet->cpu, arguments);
    if (!detaches) promise.set_value();
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
}

}  // namespace

void run_detached(Executor& executor, BlockingThreads* threads, Graph& graph, Task& task,
                  const Arguments& arguments) {
  const Promise promise = PromiseAccess::make(executor, task);
  const auto with_promise = [](Arguments given, const Promise& given_promise) {
    given.promise = &given_promise;
    return given;
  };
  if (!task.codelet->blocks || !threads)
    return run_to_the_end(graph, task, with_promise(arguments, promise), promise, false);
  try {
    const std::vector<View> operands(arguments.operands.begin(), arguments.operands.end());
    threads->run([=, &graph, &task] {
      Arguments given = with_promise(arguments, promise);
      given.operands = operands;
      run_to_the_end(graph, task, given, promise, true);
    });
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
}

void go_on(Executor& executor, Task& task) {
  task.side()->go_on(PromiseAccess::make(executor, task));
}

}  // namespace quadriga
