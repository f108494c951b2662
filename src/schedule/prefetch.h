// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/prefetch.h: fetches what placed tasks will need while others run, in the order of
// the plan. What is fetched holds no room against anybody: it can be evicted.
#pragma once

#include <deque>
#include <vector>

#include "schedule/checked_policy.h"
#include "schedule/lookahead.h"
#include "schedule/state.h"

namespace quadriga {

class Prefetch {
 public:
  Prefetch(ScheduleState& state, CheckedPolicy& policy);

  /// Orders what a device may fetch now.
  void fetch(DeviceState& device);
  /// What was foreseen for the device no longer holds.
  void forget(const DeviceState& device) { foreseen_[device.id].fetches.clear(); }

 private:
  struct Foreseen {
    Lookahead lookahead;
    std::deque<Fetch> fetches;  ///< Not ordered yet.
  };
  class View;

  bool is_obsolete(const Fetch& fetch, const DeviceState& device);
  bool holds(const Fetch& fetch, const DeviceState& device);
  void look_ahead(const DeviceState& device);
  std::size_t choose(const DeviceState& device, const std::deque<Fetch>& fetches);

  ScheduleState& state_;
  CheckedPolicy& policy_;
  std::deque<Foreseen> foreseen_;  ///< By device; not copied.
  std::vector<Resident> residents_;
  std::vector<PrefetchCandidate> candidates_;  ///< For the policy's question.
};

}  // namespace quadriga
