// SPDX-License-Identifier: BSD-3-Clause
// src/engine/virtual_drive.h: waiting under the virtual clock: whoever waits drives, and time
// passes only by that.
//
// Invariants
//   1. `mutex_` guards what is driven, and `steps_`. Who drives holds it, and gives it up only
//      where nothing is left to drive, so that others may.
//   2. While all that is left is up to other threads no time passes by the virtual clock, and
//      theirs may be long: what is left of the timeout then counts by the real one, from the last
//      step that anyone drove.
//   3. That nothing can run any more is told as an error only if no other thread is to act, and no
//      task has been on its way for as often as is waited for one.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>

#include "device/backend.h"
#include "engine/inbox.h"

namespace quadriga {

class VirtualDrive {
 public:
  /// What other threads have to do before more can run.
  enum class Others {
    nothing,
    promises,  ///< To keep one, which sends a message.
    access,    ///< To end an access on the host, which sends none.
  };
  /// All but `now` are called with `mutex_` held.
  struct Hooks {
    /// Drives on, at most until the deadline; false if there was nothing to do.
    std::function<bool(Nanoseconds deadline)> step;
    std::function<Nanoseconds()> now;
    std::function<Others()> others;
    /// Every task that was submitted has ended.
    std::function<bool()> all_ended;
    /// A step has thrown: nothing is driven any more.
    std::function<void(std::exception_ptr error)> broken;
    /// What waits for what; for people.
    std::function<std::string()> status;
  };
  static constexpr int usual_patience = 500;  ///< Ten seconds, on however busy a machine.

  /// `patience`: how often a task on its way is waited for, 20 ms each.
  VirtualDrive(Inbox& inbox, Hooks hooks, int patience = usual_patience);

  /// Runs something between steps. Errors: what it throws, and what broke the driver before.
  void execute(const std::function<void()>& work);
  /// Drives until something has happened. Errors: internal if nothing can run.
  void help();
  /// Drives until the condition holds; false at the deadline. Errors: internal if nothing can run
  /// any more.
  bool until(const std::function<bool()>& condition, Nanoseconds deadline);

 private:
  template <class Work>
  void guard(Work&& work);
  bool drive(Nanoseconds deadline);
  bool await_others();
  bool await_submission(int& idle);
  void sleep(std::chrono::milliseconds a_while);

  Inbox& inbox_;
  const Hooks hooks_;
  const int patience_;
  std::recursive_mutex mutex_;
  std::uint64_t steps_ = 0;
};

}  // namespace quadriga
