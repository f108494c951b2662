// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/scheduler.cpp: what events of tasks change, and the steps of deciding.
#include "schedule/scheduler.h"

#include <algorithm>
#include <utility>

namespace quadriga {
namespace {

/// Where the system refuses a buffer the log says so.
SpillAnswers answers_of(const ScheduleOptions& options) {
  SpillAnswers answers = options.memory.answers;
  if (ScheduleLog* const log = options.log)
    answers.refused = [log](std::uint64_t question) { log->refused(question); };
  return answers;
}

}  // namespace

Scheduler::Scheduler(const Machine& machine, Instructions& instructions, ScheduleListener& listener,
                     TaskRunner& runner, ScheduleOptions options)
    : state_(machine, instructions, listener),
      policy_(std::move(options.policy)),
      uses_(state_),
      news_(state_, recovery_, prefetch_,
            [this](DeviceState& device, const std::exception_ptr& cause) { lose(device, cause); }),
      memory_(instructions, machine, options.spaces, uses_, news_,
              {options.memory.spill_bytes, policy_->eviction(), answers_of(options)}),
      placement_(state_, *policy_),
      pulls_(state_, placement_, *policy_),
      launcher_(state_, placement_.prediction(), runner),
      gangs_(state_, launcher_),
      recovery_(state_, placement_.feasibility(), launcher_),
      prefetch_(state_, *policy_),
      endings_(state_, uses_, {*policy_, recovery_, gangs_, groups_}),
      turns_(state_, {*policy_, placement_, pulls_, launcher_, gangs_, prefetch_, endings_},
             options.most_rounds),
      log_(options.log) {
  state_.memory = &memory_;
  policy_->report_to([this](std::string text) { state_.listener.noticed(std::move(text)); });
  open_devices(options.kernel_streams);
}

void Scheduler::open_devices(std::span<const std::vector<StreamId>> kernel_streams) {
  state_.devices.resize(state_.machine.devices.size());
  for (DeviceState& device : state_.devices) {
    device.id = static_cast<DeviceId>(&device - state_.devices.data());
    device.space = state_.described(device).space;
    for (const StreamId id : kernel_streams[device.id]) {
      device.streams.push_back({.id = id, .issued = {}});
      if (state_.owners.size() <= id) state_.owners.resize(id + 1);
    }
    for (ComputeStream& stream : device.streams) state_.owners[stream.id] = {&device, &stream};
  }
  state_.index_spaces();
}

// Events.

void Scheduler::add(Datum& datum) {
  const std::size_t element = size_of(datum.dtype);
  datum.tile =
      memory_.replicas().add({datum.home, static_cast<std::size_t>(datum.rows) * element,
                              static_cast<std::size_t>(datum.cols),
                              static_cast<std::size_t>(datum.ld) * element, datum.home_space});
  TileUses& uses = state_.plan.uses().at(datum.tile);
  uses = TileUses{};
  uses.datum = &datum;
  uses.is_partial = datum.partial;
  if (log_) log_->added(datum);
}

void Scheduler::remove(Datum& datum) {
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.event("remove", datum.tile); });
  memory_.residency().remove(datum.tile);
  state_.lingering.remove(datum.tile);
  state_.plan.uses().at(datum.tile) = TileUses{};
}

void Scheduler::submitted(Task& task, const Cost& cost) {
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.submitted(task, cost); });
  groups_.entered(task.group);
  PlannedTask& planned = state_.plan.add(task, Plan::Uses::later);
  placement_.prediction().begin(planned, cost);
  if (policy_->traits().follows_tasks) policy_->submitted(placement_.news_of(planned));
  placement_.submitted(planned);
  gangs_.entered(planned);
  if (planned.device != no_device) state_.devices[planned.device].touched = true;
}

void Scheduler::ready(Task& task, Predecessors predecessors, const EndedTask* last) {
  const LoggedCall call(log_, state_.instructions, [&](ScheduleLog& log) {
    log.ready(task, predecessors, last ? last->device : no_device, last ? last->path : 0);
  });
  PlannedTask& planned = *task.planned;
  planned.predecessors = std::max(planned.predecessors, predecessors);
  if (last && last->device != no_device) {
    planned.path = std::max(planned.path, last->path);
    planned.activator = last->device;
  }
  activate(planned);
}

void Scheduler::activate(PlannedTask& planned) {
  if (planned.state() >= TaskState::ready) return;
  placement_.rank(planned);
  if (pulls_.add(planned)) {
    state_.touch_all();
    return;
  }
  if (planned.device == no_device) placement_.choose(planned);
  if (planned.state() == TaskState::deferred) return;
  if (planned.device == no_device) return endings_.end(planned, recovery_.none_left());
  DeviceState& device = state_.devices[planned.device];
  if (!may_issue(device, planned)) return;
  if (planned.gang) return gangs_.ready(planned);
  state_.plan.make_ready(planned);
  device.touched = true;
}

void Scheduler::cancel(bool on) {
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.flag("cancel", on); });
  state_.cancelled = on;
  state_.touch_all();
}

void Scheduler::cancel(TaskGroup& group) {
  const LoggedCall call(log_, state_.instructions, [&](ScheduleLog& log) { log.cancelled(group); });
  group.stopped = true;
  state_.touch_all();
}

void Scheduler::ended(const Completion& completion) {
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.ended(completion); });
  if (memory_.completed(completion)) return;
  state_.instructions.ended(completion.event);
  kernel_ended(state_.owners[completion.event.stream], completion);
}

void Scheduler::kernel_ended(const StreamOwner& owner, const Completion& completion) {
  DeviceState& device = *owner.device;
  device.touched = true;
  PlannedTask& planned = *owner.stream->issued.front().second;
  Launcher::ended(device, *owner.stream, planned);
  const Nanoseconds duration = completion.end - completion.begin;
  if (!completion.error) {
    state_.listener.ran(planned, completion);
    planned.like->measured(*planned.counted, static_cast<double>(duration) / 1e9);
  }
  std::exception_ptr error = completion.error;
  if (!error && recovery_.is_result_lost(planned)) error = device.loss;
  if (error && is_device_lost(error)) {
    if (!device.lost) lose(device, error, &planned);
    if (!planned.gang && recovery_.run_again(planned)) return;
  }
  planned.path += duration;
  if (!error) error = planned.source_error;
  endings_.body_ended(planned, error);
}

void Scheduler::kept(Task& task, std::exception_ptr error) {
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.kept(task, error != nullptr); });
  const DeviceId device = task.planned->device;
  if (endings_.kept(*task.planned, std::move(error))) state_.devices[device].touched = true;
}

/// What is placed on a lost device goes elsewhere.
void Scheduler::lose(DeviceState& device, const std::exception_ptr& cause,
                     const PlannedTask* ending) {
  recovery_.set_aside(device, cause, ending);
  prefetch_.forget(device);
  gangs_.device_lost(device.id, cause);
  const PlanSet& planned = state_.plan.on(device.id).planned();
  const std::vector<PlannedTask*> homeless(planned.begin(), planned.end());
  for (PlannedTask* const task : homeless) {
    const bool was_ready = task->state() == TaskState::ready;
    state_.plan.unplace(*task);
    if (was_ready) activate(*task);
  }
  for (PlannedTask* const task : pulls_.device_lost()) endings_.end(*task, recovery_.none_left());
}

// Decisions.

void Scheduler::begin_steps() {
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.event("begin_steps"); });
  turns_.begin();
}

bool Scheduler::step() {
  while (TaskGroup* const group = groups_.next_cancelled()) cancel(*group);
  const LoggedCall call(log_, state_.instructions, [&](ScheduleLog& log) { log.event("step"); });
  if (!recovery_.under_way()) return turns_.step();
  turns_.pause();
  return false;
}

bool Scheduler::resolve_standstill() {
  if (!turns_.is_stuck()) return false;
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.event("standstill"); });
  return turns_.resolve_standstill();
}

void Scheduler::validate() {
  state_.validate();
  pulls_.validate();
  gangs_.validate();
  memory_.validate();
}

}  // namespace quadriga
