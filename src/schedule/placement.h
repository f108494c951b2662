// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/placement.h: which device runs a task, and which tasks idle devices take from
// others. Asks the policy.
#pragma once

#include <vector>

#include "graph/device_side.h"
#include "schedule/checked_policy.h"
#include "schedule/feasibility.h"
#include "schedule/prediction.h"
#include "schedule/state.h"

namespace quadriga {

class Placement {
 public:
  Placement(ScheduleState& state, CheckedPolicy& policy)
      : state_(state), feasibility_(state), prediction_(state), policy_(policy) {}

  const Feasibility& feasibility() const noexcept { return feasibility_; }
  Prediction& prediction() noexcept { return prediction_; }
  /// Places what is placed when it is submitted: tasks with an owner under a policy that plans
  /// ahead, and those that a single device can run.
  void submitted(PlannedTask& planned);
  /// Chooses a device for a task without one; it has none afterwards if none can run it, or it is
  /// deferred.
  void choose(PlannedTask& planned);
  /// Puts a task where the policy ranks it among those that are ready.
  void rank(PlannedTask& planned);
  /// Shows a task to the policy; valid until the next question.
  TaskNews news_of(const PlannedTask& planned);
  /// Gives a task that could be issued, and has no device, one that can run it.
  void take(PlannedTask& planned, DeviceId device) {
    planned.like->chosen();
    move(planned, device);
  }
  /// Whether a task without a device has a choice of them: none is given by it.
  bool has_choice(const PlannedTask& planned) const;
  /// Moves a task to a device; if it is ready it is so there.
  void move(PlannedTask& planned, DeviceId device);
  /// Takes one task from another device's queue; false if there is none worth it.
  bool steal(DeviceState& thief);

 private:
  bool is_bound(const Task& task) const;
  void let_choose(PlannedTask& planned, DeviceSide& side);
  DeviceId given_device(const Task& task) const;
  std::size_t ask(const PlannedTask& planned);
  PlaceCandidate place_candidate(const PlannedTask& planned, const DeviceState& device) const;
  void note_stealable(const DeviceState& thief);
  bool may_take(const PlannedTask& planned, const DeviceState& victim,
                const DeviceState& thief) const;
  StealCandidate steal_candidate(const PlannedTask& planned, const DeviceState& thief,
                                 const DeviceState& victim, double& fetch) const;
  bool steal_from(const DeviceState& victim, DeviceState& thief);

  ScheduleState& state_;
  Feasibility feasibility_;
  Prediction prediction_;
  CheckedPolicy& policy_;
  // Scratch, so that a decision allocates nothing.
  std::vector<PlaceCandidate> candidates_;
  std::vector<OperandPlace> places_;
  std::vector<OperandView> operands_;
  std::vector<double> kernel_seconds_;  ///< By device.
  std::vector<double> queued_;
  std::vector<StealCandidate> offers_;
  std::vector<PlannedTask*> offered_;
};

/// Whether its predecessors let a device queue it: events don't join the CPU and other devices,
/// there all must be done.
inline bool may_issue(const DeviceState& device, const PlannedTask& planned) noexcept {
  return device.space == host_space ? planned.predecessors == Predecessors::done
                                    : planned.predecessors != Predecessors::pending;
}

}  // namespace quadriga
