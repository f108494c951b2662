// SPDX-License-Identifier: BSD-3-Clause
// src/message/attendance.cpp: calls attend, leave, and hand over to the service thread.
#include "message/attendance.h"

#include <exception>
#include <string>

#include "base/log.h"

namespace quadriga::message {

void Attendance::enter() noexcept {
  ++attending_;
  if (own_.armed(Doorbell::service)) own_.disarm(Doorbell::service);
}

void Attendance::leave() noexcept {
  --attending_;
  hand_over();
}

void Attendance::hand_over() noexcept {
  if (attending_ > 0 || !is_served_) return;
  if (!traffic_.has_large()) return;
  own_.arm(Doorbell::service);
  // What came before it was armed rang no bell; what it leads to is the thread's.
  bool moved = true;
  try {
    moved = traffic_.progress();
  } catch (...) {
    // The thread meets it too, and says so.
  }
  if (!moved && !dozes_) return;
  dozes_ = false;
  ++handed_over_;
  own_.wake_service();
}

ServiceThread::Sleep Attendance::serve(bool is_closed) {
  using Sleep = ServiceThread::Sleep;
  dozes_ = is_closed || !traffic_.has_large();
  if (dozes_) return Sleep::until_woken;
  if (attending_ > 0) return Sleep::slice;
  // Armed first: what comes while it looks wakes it again.
  own_.arm(Doorbell::service);
  try {
    if (traffic_.progress()) return Sleep::none;
    return traffic_.has_moves() ? Sleep::brief : Sleep::slice;
  } catch (const std::exception& error) {
    log(LogLevel::error, std::string("messages: ") + error.what());
    return Sleep::slice;  // The calls meet it too.
  }
}

}  // namespace quadriga::message
