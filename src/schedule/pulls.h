// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/pulls.h: ready tasks that no device has yet, under a policy whose devices pull.
//
// Pure: no thread, device or clock; used by the scheduler's thread only.
//
// Invariants
//   1. A waiting task could be issued, has no device, and is in no device's plan.
//   2. A policy that chooses nothing holds no task back for ever: if no device has anything to do
//      and each gets none, the task that waits longest is placed as under other policies.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "schedule/checked_policy.h"
#include "schedule/placement.h"
#include "schedule/state.h"

namespace quadriga {

class Pulls {
 public:
  Pulls(ScheduleState& state, Placement& placement, CheckedPolicy& policy)
      : state_(state), placement_(placement), policy_(policy) {}

  /// A task could be issued. False if it doesn't wait: the policy doesn't pull, it has a device or
  /// names one, it starts together with others, or the policy follows owners and its isn't
  /// pulled_owner.
  bool add(PlannedTask& planned);
  /// Places what the policy chooses for a device that has little left to issue.
  void pull(const DeviceState& device);
  /// A task has left the schedule; nothing if it doesn't wait.
  void left(const PlannedTask& planned);
  /// Takes out those that no device can run any more.
  std::vector<PlannedTask*> homeless();
  void validate() const;

 private:
  bool place(const DeviceState& device, std::uint64_t id);
  void place_oldest();
  bool is_idle() const;

  ScheduleState& state_;
  Placement& placement_;
  CheckedPolicy& policy_;
  std::map<std::uint64_t, PlannedTask*> tasks_;  ///< By number, those submitted first in front.
  std::uint32_t pulled_ = 0;                     ///< Counts tasks.
  std::vector<std::uint64_t> chosen_;
};

}  // namespace quadriga
