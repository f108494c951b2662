// SPDX-License-Identifier: BSD-3-Clause
// src/message/collective_times.h: where the time of a rank's last collective went.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "message/schedules/schedule.h"
#include "message/transfer.h"

namespace quadriga::message {

/// One step, in seconds since the collective began.
struct StepTime {
  StepKind kind = StepKind::copy;
  int peer = -1;
  std::int64_t bytes = 0;
  double ready = 0;   ///< What it waited for had ended.
  double begun = 0;   ///< Its turn came.
  double queued = 0;  ///< The call that began it returned.
  /// A large receive's message was there, so that its bytes could move; else as `begun`.
  double matched = 0;
  double ended = 0;  ///< This rank saw its end.
};

/// Seconds since the collective began.
struct CollectiveTimes {
  CallKind operation = CallKind::none;
  std::string plan{};  ///< Empty: it went along no trees.
  double planned = 0;  ///< The plan's own seconds, without what comes before and after its steps.
  double agreed = 0;   ///< All ranks had come and said the same.
  double packed = 0;   ///< The steps began: what isn't side by side had been packed.
  double moved = 0;    ///< The last step had ended.
  double ended = 0;    ///< The result was where it belongs.
  std::vector<StepTime> steps{};
  std::string by = "messages";  ///< Or NCCL, with its version.
};

/// Notes the times of steps; the clock is the steps' begin's.
class StepTimes {
 public:
  using Clock = std::chrono::steady_clock;
  StepTimes(std::vector<StepTime>& into, Clock::time_point begin) : into_(into), begin_(begin) {}
  double at(Clock::time_point when) const {
    return std::chrono::duration<double>(when - begin_).count();
  }
  double now() const { return at(Clock::now()); }
  void size(std::size_t steps) { into_.assign(steps, {}); }
  StepTime& operator[](std::size_t step) { return into_[step]; }

 private:
  std::vector<StepTime>& into_;
  const Clock::time_point begin_;
};

}  // namespace quadriga::message
