// SPDX-License-Identifier: BSD-3-Clause
// python/src/workers.h: threads that carry out calls, kept for the calls that follow.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

namespace quadriga::python {

/// Runs each job at once, on a thread that has ended its last one or on a new one.
///
/// Threads: those that find no job for ten seconds end; a child after fork() starts with none.
class Workers {
 public:
  /// The process's own, never destroyed: its threads outlive the module. The GIL must be held.
  static Workers& here();

  /// Starts a job, which throws nothing. Errors: unavailable if there is no thread for it;
  /// nothing is started then.
  void start(std::function<void()> job);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable available_;
  // Guarded by mutex_.
  std::deque<std::function<void()>> jobs_;
  std::size_t idle_ = 0;
};

}  // namespace quadriga::python
