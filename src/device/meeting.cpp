// SPDX-License-Identifier: BSD-3-Clause
// src/device/meeting.cpp: who comes last works; who waits looks whether the others still come.
#include "device/meeting.h"

#include <quadriga/error.h>

#include <chrono>

namespace quadriga {

void Meeting::join(std::size_t index, const Member& member, const Work& work) {
  constexpr std::chrono::milliseconds pause{1};  // Between looks whether the gang broke.
  std::unique_lock lock(mutex_);
  members_[index] = member;
  ++came_;
  if (state_ == State::open && came_ == members_.size()) {
    state_ = State::working;
    lock.unlock();
    std::exception_ptr error;
    try {
      work(members_);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    state_ = State::over;
  }
  while (state_ != State::over) {
    changed_.wait_for(lock, pause);
    if (state_ != State::open || !broken_.load(std::memory_order_acquire)) continue;
    error_ = std::make_exception_ptr(
        Error(Errc::cancelled, "another task that starts together with it can't run"));
    state_ = State::over;
  }
  ++left_;
  changed_.notify_all();
  if (error_) std::rethrow_exception(error_);
}

bool Meeting::has_ended() const {
  const std::lock_guard lock(mutex_);
  return left_ == members_.size();
}

}  // namespace quadriga
