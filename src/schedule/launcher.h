// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/launcher.h: issues placed tasks: reserves their operands, orders the copies that are
// missing and the kernel behind them, in one step.
//
// Invariants
//   1. Before it is issued a task holds nothing; once it is, all of its operands and its workspace.
//   2. What a task reads is waited for by its stream, and what it writes is waited for as well as
//      all that read it before.
#pragma once

#include <exception>
#include <span>
#include <vector>

#include "schedule/prediction.h"
#include "schedule/state.h"

namespace quadriga {

/// What came of trying to issue a task.
struct Verdict {
  enum class Kind {
    issued,
    waits,    ///< It is worth trying again when what it `awaits` has happened.
    skipped,  ///< There is nothing to do: it ends well without having been issued.
    failed,   ///< It can't run; `error` null: an operand's producer failed.
  };
  Kind kind = Kind::issued;
  Awaits awaits = Awaits::nothing;
  std::exception_ptr error = {};
};

class Launcher {
 public:
  Launcher(ScheduleState& state, Prediction& prediction, TaskRunner& runner)
      : state_(state), prediction_(prediction), runner_(runner) {}

  /// Whether the device should get more than it has in flight.
  static bool wants_more(const DeviceState& device) noexcept;
  /// Whether a task that fills its device would stand behind enough of its like.
  static bool would_queue(const DeviceState& device, const PlannedTask& planned) noexcept;
  /// Issues a task that is placed on the device.
  Verdict issue(DeviceState& device, PlannedTask& planned);
  /// Issues tasks that are placed on different devices, all of them or none. `culprit`: the one
  /// that failed, if one has.
  Verdict issue_together(std::span<PlannedTask* const> gang, PlannedTask*& culprit);
  /// Issues a task once more, on another device than that which was lost; false if there is no room
  /// now.
  bool issue_again(DeviceState& device, PlannedTask& planned);
  /// Has tiles leave the host's buffers, where nothing is in flight, for a task that finds none;
  /// false if none can. No more often for a task than tiles lay there and on its device when this
  /// was first asked: each time one leaves at least, and others come from that device alone.
  bool hand_over(const DeviceState& device, PlannedTask& planned);
  /// Takes an ended task out of what is in flight. Its operands stay reserved.
  static void ended(DeviceState& device, ComputeStream& stream, const PlannedTask& planned);

 private:
  /// A task whose operands are reserved.
  struct Reserved {
    PlannedTask* planned = nullptr;
    std::vector<Need> needs;
    std::vector<bool> present;
    double fetch_seconds = 0;
  };
  Verdict look(DeviceState& device, PlannedTask& planned);
  void issue_reserved(DeviceState& device, PlannedTask& planned);
  void take_back(std::span<const Reserved> reserved);
  Outcome reserve(DeviceState& device);
  void note_needs(const DeviceState& device, PlannedTask& planned);
  void note_workspace(const DeviceState& device, PlannedTask& planned);
  double note_present(const DeviceState& device);
  void count_hits(const DeviceState& device, const PlannedTask& planned);
  void launch(DeviceState& device, PlannedTask& planned);
  void bind_operands(const DeviceState& device, StreamId stream, PlannedTask& planned);
  std::span<std::byte> workspace_of(const DeviceState& device, const PlannedTask& planned) const;
  void note_before(PlannedTask& planned);
  void note_content(PlannedTask& planned);
  bool can_start(const DeviceState& device, const ComputeStream& stream) const;
  ComputeStream& stream_for(DeviceState& device, const PlannedTask& planned);
  std::exception_ptr error_of(const PlannedTask& planned, Refusal refusal) const;
  std::exception_ptr missing_home(const PlannedTask& planned) const;

  ScheduleState& state_;
  Prediction& prediction_;
  TaskRunner& runner_;
  /// Of the task that is being issued: its operands, and its workspace behind them.
  std::vector<Need> needs_;
  std::vector<bool> present_;  ///< Which of them the device has.
  double fetch_seconds_ = 0;   ///< To bring the others.
};

}  // namespace quadriga
