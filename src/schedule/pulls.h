// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/pulls.h: ready tasks that no device has yet, under a policy whose devices pull.
//
// Pure: no thread, device or clock; used by the scheduler's thread only.
//
// Invariants
//   1. A waiting task could be issued, has no device, and is in no device's plan. It ends only
//      after it was taken out.
//   2. A policy that chooses nothing holds no task back for ever: if no device has anything to do
//      and each got none in a round, the task that waits longest is placed as under other policies.
//   3. The policy knows which tasks wait, and what devices need for each: it is told of
//      choices that weren't placed, of what was placed without it, and again of all once a device
//      is lost.
//   4. A pulled task stands behind those that its device has pulled before. One of higher priority
//      than all others that wait or come first on a device passes these: a long chain goes on
//      (docs/decisions/0349-the-most-urgent-passes.md).
//   5. `priorities_` holds those of the tasks that wait.
#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>
#include <set>
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
  /// After a round in which no device issued anything: places the task that waits longest if no
  /// device has anything to do. True if it can be issued now.
  bool place_oldest();
  /// A device is lost: takes out what no other can run, and tells the policy anew of the rest.
  std::vector<PlannedTask*> device_lost();
  void validate() const;

 private:
  using Waiting = std::map<std::uint64_t, PlannedTask*>;

  void place(const DeviceState& device, std::uint64_t id);
  /// It waits no more; has no device yet.
  Waiting::iterator take_out(Waiting::iterator entry);
  bool is_most_urgent(const PlannedTask& planned) const;
  bool is_idle() const;

  ScheduleState& state_;
  Placement& placement_;
  CheckedPolicy& policy_;
  Waiting tasks_;  ///< By number, those submitted first in front.
  std::pmr::unsynchronized_pool_resource nodes_;
  std::pmr::multiset<std::int64_t> priorities_{&nodes_};
  std::uint32_t pulled_ = 0;  ///< Counts tasks.
  std::vector<std::uint64_t> chosen_;
};

}  // namespace quadriga
