// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/feasibility.h: which device can run a task at all: variants, and memory for all of
// its operands at once.
#pragma once

#include "schedule/state.h"

namespace quadriga {

class Feasibility {
 public:
  explicit Feasibility(const ScheduleState& state) : state_(state) {}

  /// Whether the device can run it now; lost ones can't.
  bool can_run(const DeviceState& device, const Task& task) const;
  /// Throws too_large or unavailable, naming what is missing, if no device can ever run it. Any
  /// thread.
  void check(const Task& task) const;
  /// By device, whether a reduction has a partial result there, or tasks add in place; empty: they
  /// do everywhere. Any thread.
  std::vector<bool> partial_places(const Codelet& codelet, const Datum& target) const;

 private:
  std::size_t bytes_needed(const Task& task, DeviceId device) const;
  bool takes_over(const DeviceState& device, const Codelet& codelet) const;
  [[noreturn]] void refuse_on_host(const Task& task, std::size_t needed) const;

  const ScheduleState& state_;
};

}  // namespace quadriga
