// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/ready_order.h: the order in which a device's ready tasks are tried, where the policy
// chooses it.
#pragma once

#include <span>
#include <vector>

#include "schedule/checked_policy.h"
#include "schedule/state.h"

namespace quadriga {

/// Appends a task's operands to `operands`, which has room for them, and shows the task with them.
TaskView view_of(const Task& task, std::vector<OperandView>& operands);

class ReadyOrder {
 public:
  static constexpr std::size_t most_tasks = 16;

  ReadyOrder(const ScheduleState& state, CheckedPolicy& policy) : state_(state), policy_(policy) {}

  /// Whether the policy chooses; else tasks are tried in the order of the plan.
  bool is_chosen() const noexcept { return policy_.traits().orders; }
  /// Looks at the first ready tasks of a device.
  void begin(const DeviceState& device);
  /// The next one to try, once each; null after the last. Valid as long as none of them ends.
  PlannedTask* next();

 private:
  ReadyCandidate candidate(const DeviceState& device, const PlannedTask& planned);

  const ScheduleState& state_;
  CheckedPolicy& policy_;
  // Of one device, between begin() and the last next().
  std::vector<PlannedTask*> tasks_;
  std::vector<ReadyCandidate> candidates_;
  std::vector<OperandView> operands_;
};

}  // namespace quadriga
