// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/gangs.h: tasks that start together, each on a device of its own: all or none.
//
// Pure: no thread, device or clock; used by the scheduler's thread only.
//
// Invariants
//   1. The tasks of a gang become ready in one step, once each of them could be issued alone, and
//      are issued in one step: so of two gangs the same one comes first on every stream.
//   2. What keeps one from starting keeps all: each ends when its device looks at it.
//   3. A device is `claimed` as long as a gang has claims there.
#pragma once

#include <exception>
#include <map>
#include <vector>

#include "schedule/gang_claims.h"
#include "schedule/launcher.h"
#include "schedule/state.h"

namespace quadriga {

class Gangs {
 public:
  Gangs(ScheduleState& state, Launcher& launcher) : state_(state), launcher_(launcher) {}

  /// A task was submitted; it may be one of a gang.
  void entered(PlannedTask& planned);
  /// A task of a gang has a device, and could be issued there alone.
  void ready(PlannedTask& planned);
  /// Issues all tasks of a ready one's gang, or none. If that waits for room, their devices are
  /// claimed; if one can't run, the verdict is the given task's own.
  Verdict issue(const PlannedTask& planned);
  /// The task that comes first on a claimed device.
  PlannedTask& next(DeviceId device);
  /// A task has left the schedule; nothing if it is of no gang.
  void left(const PlannedTask& planned, bool has_failed);
  /// What hasn't started doesn't without the device, and what has learns it.
  void device_lost(DeviceId device, const std::exception_ptr& cause);
  /// Nothing is in flight: the oldest that waits for room never finds it. False if there is none.
  bool fail_oldest(const std::exception_ptr& error);
  void validate() const;

 private:
  struct Member {
    PlannedTask* task = nullptr;
    std::exception_ptr error = {};  ///< Why it can't start; null: an operand's producer failed.
  };
  struct State {
    Gang* gang = nullptr;
    std::vector<Member> members;  ///< That were submitted and haven't left.
    std::uint32_t left = 0;
    bool failed = false;              ///< None will start.
    std::exception_ptr others_error;  ///< Of those that could have started.
  };
  static GangClaims::Devices devices_of(const State& gang);
  bool may_begin(const State& gang) const;
  bool is_device_in_doubt() const;
  void make_ready(State& gang);
  void claim(const State& gang);
  void drop_claims(const State& gang);
  /// `culprit` null: what keeps one from starting keeps all.
  void fail(State& gang, const PlannedTask* culprit, const std::exception_ptr& error);
  static Member& member_of(State& gang, const PlannedTask& planned);
  bool is_where_it_was_sent(State& gang);

  ScheduleState& state_;
  Launcher& launcher_;
  std::map<GangId, State> gangs_;
  GangClaims claims_;
};

}  // namespace quadriga
