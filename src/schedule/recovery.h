// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/recovery.h: what failures do to tasks in flight and to data, and how work goes on:
// write-backs are tried again, tasks of lost devices run again elsewhere.
//
// Invariants
//   1. What a failed task should have written is poisoned until a task that needs no content of it
//      is issued; who reads a poisoned tile ends cancelled.
//   2. A task in flight that relies on a copy that failed, or on a poisoned version, ends failed
//      however its kernel ends; the poison is the reason then, whatever its body threw.
//   3. Tasks of a lost device run again in the order in which they were issued: ends come in an
//      order in which nothing comes before what it waited for. Copies from a lost device fail, so
//      that nothing of their results came through. Until the last of them has run again, or failed,
//      nothing else is issued: a successor that was ready would meet a content in between.
#pragma once

#include <exception>
#include <map>

#include "base/error_text.h"
#include "schedule/feasibility.h"
#include "schedule/launcher.h"
#include "schedule/state.h"

namespace quadriga {

/// Whether an error says that a device is lost.
bool is_device_lost(const std::exception_ptr& error);

class Recovery {
 public:
  Recovery(ScheduleState& state, const Feasibility& feasibility, Launcher& launcher)
      : state_(state), feasibility_(feasibility), launcher_(launcher) {}

  /// Some of what was issued on a lost device has not come back yet.
  bool under_way() const;

  // After a copy has failed.
  /// Tasks in flight that waited for it end with its error.
  void source_failed(TileId tile, const Completion& copy);
  /// Writes back again what still can be, a few times.
  void write_back_failed(TileId tile, Reason reason);
  void write_back_done(TileId tile) { tries_.erase(tile); }
  /// The only replica is gone: says so once, and refuses who would read it.
  void content_lost(TileId tile, const std::exception_ptr& error);

  // As a task ends.
  /// What it wrote is certain, where no later task was issued that writes it.
  void confirm_written(PlannedTask& planned);
  /// What it should have written is lost, unless a task that overwrites it was issued since; tasks
  /// in flight that met it in between fail as well.
  void poison_written(PlannedTask& planned);
  /// It ended well on a device just before that was lost, and what it wrote went with it.
  bool is_result_lost(const PlannedTask& planned);
  /// Issues a task of a lost device on another one; false if it can't be, so that it fails.
  bool run_again(PlannedTask& planned);

  /// What a device held is lost with it. `ending`: the task whose end told so, if any.
  void set_aside(DeviceState& device, const std::exception_ptr& cause, const PlannedTask* ending);
  /// Why a task has no device that could run it.
  std::exception_ptr none_left() const;

 private:
  static void poison_reader(PlannedTask& planned, const Datum& datum, std::uint32_t epoch);
  std::uint32_t rewriters(const PlannedTask& planned, TileId tile) const;
  bool is_being_written(TileId tile);
  bool has_what_it_began_with(const PlannedTask& planned);
  template <class Visit>
  void for_each_in_flight(Visit&& visit) const;

  ScheduleState& state_;
  const Feasibility& feasibility_;
  Launcher& launcher_;
  std::map<TileId, int> tries_;          ///< Of write-backs that failed.
  const PlannedTask* ending_ = nullptr;  ///< The task whose end is being taken.
};

}  // namespace quadriga
