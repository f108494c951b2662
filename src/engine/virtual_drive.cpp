// SPDX-License-Identifier: BSD-3-Clause
// src/engine/virtual_drive.cpp: steps by whoever waits, and waiting for others between them.
#include "engine/virtual_drive.h"

#include <quadriga/error.h>

#include <chrono>
#include <utility>

namespace quadriga {
namespace {

constexpr std::chrono::milliseconds a_while{20};

}  // namespace

VirtualDrive::VirtualDrive(Inbox& inbox, Hooks hooks, int patience)
    : inbox_(inbox), hooks_(std::move(hooks)), patience_(patience) {}

/// Runs something of the driver's, which breaks down if that throws.
template <class Work>
void VirtualDrive::guard(Work&& work) {
  inbox_.rethrow_if_broken();
  try {
    work();
  } catch (...) {
    hooks_.broken(std::current_exception());
    throw;
  }
}

void VirtualDrive::execute(const std::function<void()>& work) {
  std::lock_guard lock(mutex_);
  guard(work);
}

bool VirtualDrive::drive(Nanoseconds deadline) {
  bool moved = false;
  guard([&] { moved = hooks_.step(deadline); });
  steps_ += moved ? 1 : 0;
  return moved;
}

void VirtualDrive::help() {
  std::lock_guard lock(mutex_);
  for (int idle = 0; !drive(never) && !await_others();)
    if (!await_submission(idle))
      fail(Errc::internal, "the window of tasks is full and nothing can run\n" + hooks_.status());
}

bool VirtualDrive::until(const std::function<bool()>& condition, Nanoseconds deadline) {
  using Clock = std::chrono::steady_clock;
  std::lock_guard lock(mutex_);
  Clock::time_point last_step = Clock::now();
  std::uint64_t seen = steps_;
  for (int idle = 0; !condition();) {
    if (hooks_.now() >= deadline) return false;
    if (drive(deadline) || await_others()) {
      idle = 0;
      if (steps_ != seen || inbox_.has_messages()) {
        seen = steps_;
        last_step = Clock::now();
      } else if (Clock::now() - last_step >= std::chrono::nanoseconds(deadline - hooks_.now())) {
        return condition();
      }
    } else if (!condition() && hooks_.now() < deadline && !await_submission(idle) && !condition()) {
      fail(Errc::internal, "nothing can run any more\n" + hooks_.status());
    }
  }
  return true;
}

/// With nothing left to drive: waits a while for another thread, which may drive meanwhile. False
/// if there is none to wait for and no message came.
bool VirtualDrive::await_others() {
  constexpr std::chrono::milliseconds an_access{1};  // its end sends no message
  if (inbox_.has_messages()) return true;
  const Others others = hooks_.others();
  if (others == Others::nothing) return false;
  sleep(others == Others::access ? an_access : a_while);
  return true;
}

/// The same where a task was submitted, but not ended: its submitter may not have told of it yet,
/// or another's request has taken the message that told, so that there is something to drive again.
/// False after so many times in a row.
bool VirtualDrive::await_submission(int& idle) {
  if (++idle > patience_ || hooks_.all_ended()) return false;
  sleep(a_while);
  return true;
}

void VirtualDrive::sleep(std::chrono::milliseconds time) {
  mutex_.unlock();
  inbox_.wait_for(time);
  mutex_.lock();
}

}  // namespace quadriga
