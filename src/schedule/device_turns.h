// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/device_turns.h: what devices do when it is their turn: which ready task each issues,
// and what it steals, fetches ahead and cleans where it has none.
//
// Pure: no thread, device or clock; used by the scheduler's thread only.
//
// Invariants
//   1. A device is asked for a task only if it was touched since it found none.
//   2. While a task waits for room at the head of a device nothing else is issued there. Tasks that
//      wait for content from elsewhere let others pass.
//   3. A device looks around, steals and fetches ahead at most once before something touches it.
//   4. While tiles leave the host's buffers for the head of a device, the claimant, no other device
//      is asked and nothing is cleaned: nobody takes the room. A claim begins only where no copy is
//      in flight and no task issued, and ends, whatever promises are open, as soon as
//        a. the task is no longer the head: it was issued, it ended, it waits for other things, or
//           the device was lost; this is looked at before each decision; or
//        b. again no copy is in flight and no task issued, and nothing more can leave.
//      What is in flight ends in any case; so a claim does. Of a task tiles leave no more often
//      than is fixed when they first do (Launcher::hand_over()); so the standstills do, too.
//   5. A task is refused for want of a buffer only where no promise is open, either: what that ends
//      may free one.
#pragma once

#include <quadriga/error.h>

#include "schedule/endings.h"
#include "schedule/gangs.h"
#include "schedule/launcher.h"
#include "schedule/placement.h"
#include "schedule/prefetch.h"
#include "schedule/pulls.h"
#include "schedule/ready_order.h"
#include "schedule/state.h"
#include "schedule/turns.h"

namespace quadriga {

class DeviceTurns {
 public:
  /// Those that carry out what is decided. They must outlive this.
  struct Parts {
    CheckedPolicy& policy;
    Placement& placement;
    Pulls& pulls;
    Launcher& launcher;
    Gangs& gangs;
    Prefetch& prefetch;
    Endings& endings;
  };
  /// `most_rounds`: see Turns.
  DeviceTurns(ScheduleState& state, const Parts& parts, int most_rounds)
      : state_(state),
        parts_(parts),
        order_(state, parts.policy),
        turns_(state.machine.devices.size(), most_rounds) {}

  /// Before the first step() after events.
  void begin();
  /// Decides about one task, or what a device does without one; false once all were asked.
  bool step();
  /// No device is asked before the next begin().
  void pause() noexcept { turns_.set_more(false); }
  /// It stopped at `most_rounds`: there is more to decide without an event.
  bool has_more() const noexcept { return turns_.has_more(); }
  /// Somebody waits for room on the host.
  bool is_stuck() const noexcept;
  /// No copy is in flight and no task issued, and one waits for a buffer on the host: lets it run
  /// elsewhere, has tiles leave for it, or fails it. False if there is none, or nothing to do
  /// before a promise is kept.
  bool resolve_standstill();
  /// Why a tile that needs the host's memory can't be brought home.
  Error no_buffer() const;

 private:
  bool issue_one(DeviceState& device);
  bool issue_next(DeviceState& device);
  void fetch_ahead(const DeviceState& device, PlanSet::const_iterator next,
                   const PlanSet::const_iterator& end) const;
  bool issue_chosen(DeviceState& device);
  bool try_issue(DeviceState& device, PlannedTask& planned);
  bool fill(DeviceState& device);
  bool leave_host(PlannedTask& planned);
  bool hand_over(DeviceState& device);
  void end_claim();
  bool look_at_claim();
  bool refuse_one();
  /// Another waits for room on the host.
  bool gives_way(const DeviceState& device) const noexcept {
    return claimant_ && claimant_ != &device;
  }

  ScheduleState& state_;
  const Parts parts_;
  ReadyOrder order_;
  Turns turns_;
  DeviceState* claimant_ = nullptr;  ///< Tiles leave the host's buffers for its head: `claimed_`.
  const PlannedTask* claimed_ = nullptr;
};

}  // namespace quadriga
