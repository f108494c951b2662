// SPDX-License-Identifier: BSD-3-Clause
// src/engine/promises.h: bodies whose task others end: the program, through a promise, or a thread
// that may wait.
//
// Invariants
//   1. kept() tells the executor once that such a task has ended; until then the task's slot, its
//      operands and its engine live on, so an open promise may refer to them.
//   2. `open_` of a promise's state is guarded by its lock, which is held while the executor is
//      told.
//   3. BlockingThreads: `idle_` counts threads without work, guarded as `work_` is by mutex_; the
//      others are at most `most_`. Work that finds no idle thread starts one, up to that limit, so
//      none waits for another's end before that many run. A thread whose work waits for other work
//      doesn't count: `most_` is higher by one until that work has returned.
#pragma once

#include <quadriga/promise.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "graph/graph.h"

namespace quadriga {

class Executor;

/// Threads for bodies that wait, as for files, and leave the cores to others meanwhile. Started
/// when they are needed, ended with it; by then nothing runs any more.
class BlockingThreads {
 public:
  explicit BlockingThreads(std::size_t most) : most_(most) {}
  ~BlockingThreads();
  BlockingThreads(const BlockingThreads&) = delete;
  BlockingThreads& operator=(const BlockingThreads&) = delete;

  /// Runs it on a thread of its own, in order of the calls if the limit is reached. `work` doesn't
  /// throw. Errors: unavailable if there is no thread and none can be started.
  void run(std::function<void()> work);
  /// This thread's work is about to wait for other work: if the thread is one of these, it doesn't
  /// count in their limit until its work has returned.
  static void leave_place() noexcept;

 private:
  void loop();
  /// How many threads may begin with work now.
  std::size_t places() const noexcept;
  void call_thread();

  std::mutex mutex_;  ///< Guards the members below.
  std::size_t most_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

/// Runs the body of a detached task; the executor hears of its end by kept(), of what the body
/// throws as well. `threads` null: a body that blocks runs here and now.
void run_detached(Executor& executor, BlockingThreads* threads, Graph& graph, Task& task,
                  const Arguments& arguments);

/// Lets a task that ran on a device go on (DeviceSide).
void go_on(Executor& executor, Task& task);

}  // namespace quadriga
