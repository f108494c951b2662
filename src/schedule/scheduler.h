// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/scheduler.h: decides what runs where and when, and what moves for it.
//
// Pure: events come in, instructions go out; it knows no thread, device or clock, and no lock. Used
// by one thread at a time.
//
// An event changes what is known. Decisions are made by step(), one task at a time: whoever carries
// them out takes what the listener was told after each, so that tasks which became ready by it are
// seen by the next. The same events and steps give the same instructions.
//
// Its parts hold the rules, and this passes events on to them: DeviceTurns says which task is
// issued next, Endings how tasks leave, MemoryNews what follows from what the memory tells,
// Recovery what failures do.
//
// Each task is in one state, see task_state.h, which also says what may follow which.
#pragma once

#include <quadriga/error.h>

#include <memory>
#include <span>
#include <string>

#include "schedule/device_turns.h"
#include "schedule/endings.h"
#include "schedule/gangs.h"
#include "schedule/groups.h"
#include "schedule/launcher.h"
#include "schedule/memory_news.h"
#include "schedule/placement.h"
#include "schedule/planned_uses.h"
#include "schedule/prefetch.h"
#include "schedule/pulls.h"
#include "schedule/recovery.h"
#include "schedule/schedule_log.h"
#include "schedule/state.h"

namespace quadriga {

/// What a scheduler is given when it is made.
struct ScheduleOptions {
  std::unique_ptr<CheckedPolicy> policy;
  MemoryOptions memory;
  std::span<const SpaceResources> spaces;                 ///< By space.
  std::span<const std::vector<StreamId>> kernel_streams;  ///< By device, at least one each.
  /// Of issuing, one task a device each, before ends are looked at; 0: as many as there are.
  int most_rounds = 0;
  ScheduleLog* log = nullptr;  ///< Begun; null: none is kept.
};

/// Where data stands on its way home.
enum class Homecoming {
  home,       ///< There, or lost: there is nothing to wait for.
  under_way,  ///< On its way, or something that ends will let it start.
  no_buffer,  ///< It can't start before something frees a buffer on the host.
};

class Scheduler {
 public:
  /// The machine, the instructions and the listeners must outlive it.
  Scheduler(const Machine& machine, Instructions& instructions, ScheduleListener& listener,
            TaskRunner& runner, ScheduleOptions options);

  // Events.
  void add(Datum& datum);
  /// Nothing of it is in flight, see busy().
  void remove(Datum& datum);
  /// In order of submission, before ready(). `cost`: see Prediction::begin().
  void submitted(Task& task, const Cost& cost);
  /// A task's predecessors are all issued, or all done. `last`: the one that ended last, if any
  /// has.
  void ready(Task& task, Predecessors predecessors, const EndedTask* last = nullptr);
  /// An operation has ended. In an order in which nothing comes before what it waited for.
  void ended(const Completion& completion);
  /// The promise of a detached task was kept; `error` null: what it wrote is there.
  void kept(Task& task, std::exception_ptr error);
  /// While set, tasks that have not been issued end cancelled.
  void cancel(bool on);
  /// The group's tasks that have not been issued end cancelled. step() does it by itself for groups
  /// whose `cancelled` is set.
  void cancel(TaskGroup& group);
  /// No task submitted from here on writes the data.
  void final(Datum& datum);
  /// The data's replicas on devices shall go, where home is current.
  void evict(Datum& datum);
  /// The data's content is wanted at home.
  Homecoming bring_home(Datum& datum);
  /// The host may write what is home: no replica elsewhere is valid any more. False while a copy is
  /// in flight. Nothing is done to what tasks use, whose replicas go when they are waited for, and
  /// to lost content unless the host `overwrites` it.
  bool give_back(Datum& datum, bool overwrites);
  /// What an ended task left on devices of the data comes home, and isn't anywhere else then. What
  /// pending tasks read may stay there, and nothing is done to what they write: their ends come.
  Homecoming return_home(Datum& datum);
  /// The host has written it, and no task that was issued uses it.
  void host_wrote(Datum& datum);

  // Decisions.
  /// Before the first step() after events.
  void begin_steps();
  /// Decides a little more; false once there is nothing left to decide before the next event. True:
  /// call again once the listener's news are taken.
  bool step();
  /// It stopped at `most_rounds`: step() would go on after begin_steps() even without an event.
  bool has_more() const noexcept { return turns_.has_more(); }
  /// Nothing moves, see is_moving(), and a task waits for a buffer on the host: lets it run
  /// elsewhere, has tiles leave for it, or fails it. False if there is none, or nothing to do
  /// before a promise is kept.
  bool resolve_standstill();

  // What it knows.
  bool in_flight() const noexcept { return is_moving() || awaits_promises(); }
  /// A copy is in flight, or a task issued: its end is an event.
  bool is_moving() const noexcept {
    return memory_.transfers().in_flight() > 0 || state_.any_issued();
  }
  /// Some task's body has ended, and the task ends when its promise is kept.
  bool awaits_promises() const noexcept { return state_.detached > 0; }
  bool busy(const Datum& datum) const noexcept { return memory_.replicas().busy(datum.tile); }
  const Memory& memory() const noexcept { return memory_; }
  const Feasibility& feasibility() const noexcept { return placement_.feasibility(); }
  /// Why a tile that needs the host's memory can't be brought home.
  Error no_buffer() const { return turns_.no_buffer(); }
  /// Whether ended tasks left something on devices: then return_home() has something to do.
  bool has_lingering() const noexcept { return !state_.lingering.tiles().empty(); }
  template <class Visit>
  void for_each_lingering(Visit&& visit) {
    for (const TileId tile : state_.lingering.tiles()) visit(*state_.plan.uses().at(tile).datum);
  }
  template <class Visit>
  void for_each_datum(Visit&& visit) {
    state_.plan.uses().for_each_datum(visit);
  }
  /// What each device has, and which tasks wait for what; for people.
  std::string status() const { return describe(state_); }
  void validate();

 private:
  void open_devices(std::span<const std::vector<StreamId>> kernel_streams);
  void activate(PlannedTask& planned);
  void kernel_ended(const StreamOwner& owner, const Completion& completion);
  bool knows(const Datum& datum) const;
  bool in_use(const Datum& datum) const;
  void give(Datum& datum);
  void lose(DeviceState& device, const std::exception_ptr& cause,
            const PlannedTask* ending = nullptr);

  ScheduleState state_;
  const std::unique_ptr<CheckedPolicy> policy_;
  PlannedUses uses_;
  MemoryNews news_;
  Memory memory_;
  Placement placement_;
  Pulls pulls_;
  Launcher launcher_;
  Gangs gangs_;
  Recovery recovery_;
  Prefetch prefetch_;
  Groups groups_;
  Endings endings_;
  DeviceTurns turns_;
  ScheduleLog* const log_;
};

}  // namespace quadriga
