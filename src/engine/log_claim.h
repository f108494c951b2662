// SPDX-License-Identifier: BSD-3-Clause
// src/engine/log_claim.h: which engine of a process writes the schedule's log.
#pragma once

#include <atomic>

namespace quadriga {

/// The right to write the file that the setting `schedule_log` names. The first engine that is open
/// has it until it ends: engines beside it, as those that plan its calls, would write over what it
/// wrote.
class LogClaim {
 public:
  LogClaim() = default;
  LogClaim(const LogClaim&) = delete;
  LogClaim& operator=(const LogClaim&) = delete;
  ~LogClaim() {
    if (is_mine_) is_taken.store(false, std::memory_order_release);
  }
  /// False if another has it.
  bool take() noexcept {
    is_mine_ = !is_taken.exchange(true, std::memory_order_acq_rel);
    return is_mine_;
  }

 private:
  static inline std::atomic<bool> is_taken{false};
  bool is_mine_ = false;
};

}  // namespace quadriga
