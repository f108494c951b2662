// SPDX-License-Identifier: BSD-3-Clause
// src/device/call_thread.h: a thread that makes blocking calls, one after the other.
//
// Invariants
//   1. `mutex_` guards all members; it isn't held during a call.
//   2. A call waits, runs or has ended. Calls are made in the order of add().
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace quadriga {

/// The thread starts with the first call and sleeps while there is none.
class CallThread {
 public:
  CallThread() = default;
  /// Waits for the call that runs; those that wait are dropped.
  ~CallThread();
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  /// Any thread, calls themselves included. A call must not throw.
  void add(std::function<void()> call);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace quadriga
