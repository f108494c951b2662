// SPDX-License-Identifier: BSD-3-Clause
// src/message/attendance.h: who moves a rank's messages on: its calls while they wait or tend to
// them, else its service thread.
//
// Invariants
//   1. All functions are called with the endpoint's lock.
//   2. The service thread moves messages only while nobody attends, and a large message needs this
//      rank; small ones lie in their ring until a call looks. Else it sleeps until it is woken.
//   3. Who leaves a large message to it arms its bell before he looks once more, so that what
//      comes after that look wakes it.
//   4. It is woken by who leaves, unless it looks by itself soon and nothing has moved since.
#pragma once

#include <cstdint>

#include "message/service_thread.h"
#include "message/traffic.h"

namespace quadriga::message {

class Attendance {
 public:
  Attendance(Traffic& traffic, const Doorbell& own) : traffic_(traffic), own_(own) {}

  /// There is a service thread from now on.
  void begin_service() noexcept { is_served_ = true; }
  bool is_served() const noexcept { return is_served_; }
  /// A call attends until it leaves.
  void enter() noexcept;
  void leave() noexcept;
  /// A call has started something and doesn't attend: what is large is the service thread's.
  void hand_over() noexcept;
  /// A look of the service thread's: how long it may sleep.
  ServiceThread::Sleep serve(bool is_closed);
  /// How often calls woke the service thread to go on with what they had started.
  std::uint64_t handed_over() const noexcept { return handed_over_; }

 private:
  Traffic& traffic_;
  const Doorbell own_;
  bool is_served_ = false;
  int attending_ = 0;
  bool dozes_ = true;  ///< The service thread may sleep until it is woken.
  std::uint64_t handed_over_ = 0;
};

}  // namespace quadriga::message
