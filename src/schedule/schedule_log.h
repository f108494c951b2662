// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/schedule_log.h: what a scheduler was told and what it instructed, line by line, so
// that a run can be decided once more: see replay.h.
//
// Each line is a JSON array. The first ones say what the scheduler was made of; then come events
// and steps, in order, each followed by what the system refused meanwhile (see spill.h) and by the
// instructions that it led to. Tiles, tasks, groups and codelets are named by number.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "device/instructions.h"
#include "memory/memory.h"
#include "memory/space_resources.h"
#include "schedule/plan.h"

namespace quadriga {

class ScheduleLog {
 public:
  /// What lines are appended to; must outlive this.
  explicit ScheduleLog(std::ostream& out) : out_(out) {}

  void begin(const Machine& machine, std::string_view policy, std::string_view eviction,
             std::uint64_t seed, int most_rounds, const MemoryOptions& memory,
             std::span<const SpaceResources> spaces,
             std::span<const std::vector<StreamId>> kernel_streams);
  void added(const Datum& datum);
  void submitted(const Task& task, const Cost& cost);
  void ready(const Task& task, Predecessors predecessors, DeviceId by, Nanoseconds path);
  void kept(const Task& task, bool failed);
  void ended(const Completion& completion);
  void cancelled(const TaskGroup& group);
  /// Any other event of one tile, or of none; and steps.
  void event(std::string_view name, TileId tile = no_tile);
  void event(std::string_view name, TileId tile, bool flag);
  void flag(std::string_view name, bool on);
  /// Within an event: the system gave no buffer when it was asked for the so-many-th time.
  void refused(std::uint64_t question);
  /// Those that have been written since the last call.
  void instructed(std::span<const Instruction> pending);

  /// An instruction as a line: what it does, where, and how much; addresses of devices as offsets.
  std::string line_of(const Instruction& instruction) const;

 private:
  int number_of(const Codelet* codelet);
  std::uint64_t number_of(const TaskGroup* group) const;

  std::ostream& out_;
  std::vector<SpaceResources> spaces_;
  std::size_t devices_ = 0;
  /// Of the host's cores: in a replay its buffers may lie where an arena lay in the run.
  std::set<StreamId> host_streams_;
  std::map<const Codelet*, int> codelets_;
  std::uint64_t instructed_ = 0;  ///< The number that was written last.
};

/// A call of a scheduler from outside: `note` tells the log of it, what it led to follows. Without
/// a log nothing happens.
class LoggedCall {
 public:
  template <class Note>
  LoggedCall(ScheduleLog* log, const Instructions& instructions, Note&& note)
      : log_(log), instructions_(instructions) {
    if (log_) note(*log_);
  }
  ~LoggedCall() {
    if (log_) log_->instructed(instructions_.pending());
  }
  LoggedCall(const LoggedCall&) = delete;
  LoggedCall& operator=(const LoggedCall&) = delete;

 private:
  ScheduleLog* log_;
  const Instructions& instructions_;
};

}  // namespace quadriga
