// SPDX-License-Identifier: BSD-3-Clause
// src/engine/promises.cpp: promises, and threads that may wait.
#include "engine/promises.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <system_error>
#include <utility>

#include "engine/bodies.h"
#include "engine/executor.h"

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

void BlockingThreads::run(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  if (idle_ >= work_.size() || threads_.size() >= most_) return changed_.notify_one();
  try {
    threads_.emplace_back([this] { loop(); });
  } catch (const std::system_error&) {
    if (!threads_.empty()) return;  // one of them comes to it
    work_.pop_back();
    throw;
  }
}

void BlockingThreads::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [&] { return stopping_ || !work_.empty(); });
    --idle_;
    if (work_.empty()) return;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

namespace {

/// Ends the task as its body does; one that detaches ends it itself, unless it throws.
void run_to_the_end(Graph& graph, Task& task, const Arguments& arguments, const Promise& promise) {
  const RunningTask running(graph, &task);
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
    return run_to_the_end(graph, task, with_promise(arguments, promise), promise);
  try {
    const std::vector<View> operands(arguments.operands.begin(), arguments.operands.end());
    threads->run([=, &graph, &task] {
      Arguments given = with_promise(arguments, promise);
      given.operands = operands;
      run_to_the_end(graph, task, given, promise);
    });
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
}

}  // namespace quadriga
