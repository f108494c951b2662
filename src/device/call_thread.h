// SPDX-License-Identifier: BSD-3-Clause
// src/device/call_thread.h: calls that may wait, made by a thread of their own, one by one.
//
// Invariants
//   1. `mutex_` guards all members but `notify_` and `thread_`; it isn't held during a call, nor
//      during notify_().
//   2. A call is in one place: waiting, running or ended. Calls end in the order of add().
//   3. Who adds calls is the only one who takes ended ones, and who destroys this.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace quadriga {

/// The thread starts with the first call and sleeps while there is none.
class CallThread {
 public:
  struct Ended {
    std::uint32_t id = 0;
    std::exception_ptr error;  ///< What the call threw.
  };

  /// `notify` is called by the thread whenever a call has ended.
  explicit CallThread(std::function<void()> notify) : notify_(std::move(notify)) {}
  /// Waits for the call that runs; those that wait are dropped.
  ~CallThread();
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  void add(std::uint32_t id, std::function<void()> call);
  /// The next call that has ended, each once; none: there is none.
  std::optional<Ended> take();

 private:
  struct Call {
    std::uint32_t id = 0;
    std::function<void()> function;
  };

  void run();

  const std::function<void()> notify_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call> waiting_;
  std::deque<Ended> ended_;
  bool stopping_ = false;
};

}  // namespace quadriga
