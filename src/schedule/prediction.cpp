// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/prediction.cpp: seconds from the table of kernel times, or from experience.
#include "schedule/prediction.h"

namespace quadriga {

void Prediction::begin(PlannedTask& planned, const Cost& cost) {
  const Task& task = *planned.task;
  std::size_t bytes = 0;
  for (int i = 0; i < task.operand_count; ++i) bytes += task.operands[i].datum->bytes();
  planned.like = &state_.kernel_history.of(task.codelet, bytes);
  planned.learns = !task.codelet->cost && task.owner == no_device && task.device == no_device;
  planned.cost = cost;
}

double Prediction::seconds_on(const PlannedTask& planned, DeviceId device) const {
  const KernelTime& time = times_.of(planned.cost, device);
  return time.known ? time.seconds : planned.like->seconds(state_.machine.devices[device].kind);
}

Experience Prediction::experience_on(const PlannedTask& planned, DeviceId device) const {
  Experience experience = planned.like->experience(state_.machine.devices[device].kind);
  experience.learns = planned.learns;
  return experience;
}

void Prediction::place_on(PlannedTask& planned, DeviceId device) {
  const DeviceKind kind = state_.machine.devices[device].kind;
  const KernelTime& time = times_.of(planned.cost, device);
  planned.seconds = time.known ? time.seconds : planned.like->seconds(kind);
  planned.fills = time.fills;
  planned.foretold = time.known;
  if (planned.counted) planned.like->taken(*planned.counted);
  planned.counted = kind;
  planned.like->put(*planned.counted);
}

void Prediction::renew(PlannedTask& planned) {
  if (!planned.learns) return;
  double& queued = state_.plan.load(planned.device).queued_seconds;
  queued -= planned.seconds;
  planned.seconds = seconds_on(planned, planned.device);
  queued += planned.seconds;
}

Nanoseconds expected_time(const Machine& machine, const PlannedTask& planned) {
  const std::string_view kernel = planned.cost.kernel;
  if (kernel.empty() || !machine.has_kernel(machine.devices[planned.device], kernel)) return 0;
  return static_cast<Nanoseconds>(planned.seconds * 1e9);
}

}  // namespace quadriga
