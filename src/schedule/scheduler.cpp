// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/scheduler.cpp: what events of tasks change, and the steps of deciding.
#include "schedule/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graph/task_life.h"

namespace quadriga {

Scheduler::Scheduler(const Machine& machine, Instructions& instructions, ScheduleListener& listener,
                     TaskRunner& runner, ScheduleOptions options)
    : state_(machine, instructions, listener),
      policy_(std::move(options.policy)),
      uses_(state_),
      memory_(instructions, machine, options.spaces, uses_, static_cast<MemoryListener&>(*this),
              {options.memory.spill_bytes, options.memory.spill_file, policy_->eviction()}),
      placement_(state_, *policy_),
      pulls_(state_, placement_, *policy_),
      launcher_(state_, placement_.prediction(), runner),
      gangs_(state_, launcher_),
      recovery_(state_, placement_.feasibility(), launcher_),
      prefetch_(state_, *policy_),
      order_(state_, *policy_),
      log_(options.log),
      turns_(machine.devices.size(), options.most_rounds) {
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
}

// Events.

void Scheduler::add(Datum& datum) {
  const std::size_t element = size_of(datum.dtype);
  datum.tile =
      memory_.replicas().add({datum.home, static_cast<std::size_t>(datum.rows) * element,
                              static_cast<std::size_t>(datum.cols),
                              static_cast<std::size_t>(datum.ld) * element, datum.home_space});
  TileUses& uses = state_.plan.uses(datum.tile);
  uses = TileUses{};
  uses.datum = &datum;
  uses.is_partial = datum.partial;
  if (log_) log_->added(datum);
}

void Scheduler::remove(Datum& datum) {
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.event("remove", datum.tile); });
  memory_.residency().remove(datum.tile);
  state_.plan.uses(datum.tile) = TileUses{};
}

void Scheduler::submitted(Task& task, const Cost& cost) {
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.submitted(task, cost); });
  groups_.entered(task.group);
  PlannedTask& planned = state_.plan.add(task);
  placement_.prediction().begin(planned, cost);
  if (policy_->traits().follows_tasks) policy_->submitted(placement_.news_of(planned));
  placement_.submitted(planned);
  gangs_.entered(planned);
  if (planned.device != no_device) touch(state_.devices[planned.device]);
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
  if (planned.ready) return;
  placement_.rank(planned);
  if (pulls_.add(planned)) {
    for (DeviceState& device : state_.devices) touch(device);
    return;
  }
  if (planned.device == no_device) placement_.choose(planned);
  if (planned.device == no_device) return end(planned, recovery_.none_left());
  DeviceState& device = state_.devices[planned.device];
  if (!may_issue(device, planned)) return;
  if (planned.gang) return gangs_.ready(planned);
  state_.plan.make_ready(planned);
  touch(device);
}

void Scheduler::cancel(bool on) {
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.flag("cancel", on); });
  state_.cancelled = on;
  for (DeviceState& device : state_.devices) touch(device);
}

void Scheduler::cancel(TaskGroup& group) {
  const LoggedCall call(log_, state_.instructions, [&](ScheduleLog& log) { log.cancelled(group); });
  group.stopped = true;
  for (DeviceState& device : state_.devices) touch(device);
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
  touch(device);
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
  if (!error && is_detached(*planned.task->codelet) && !planned.kept) {
    planned.detached = true;
    ++state_.detached;
    return;
  }
  end(planned, error ? error : planned.promised);
}

void Scheduler::kept(Task& task, std::exception_ptr error) {
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.kept(task, error != nullptr); });
  PlannedTask& planned = *task.planned;
  planned.kept = true;
  planned.promised = std::move(error);
  if (!planned.detached) return;  // its body ends it
  --state_.detached;
  touch(state_.devices[planned.device]);
  end(planned, planned.promised);
}

/// The task leaves the schedule, whether it was issued or not.
void Scheduler::end(PlannedTask& planned, std::exception_ptr error) {
  Task& task = *planned.task;
  if (policy_->traits().follows_tasks || planned.waited)
    policy_->ended(task.id.load(std::memory_order_relaxed));
  const EndedTask ended{&task, planned.released, planned.device, planned.path};
  end_content(planned, error);
  if (ended.device != no_device) {
    DeviceState& device = state_.devices[ended.device];
    if (device.head == &planned) device.head = nullptr;
    if (planned.issued)
      for (const PlannedAccess& access : planned.accesses)
        memory_.residency().unpin(access.datum->tile, device.space);
  }
  empty_partials(planned);
  if (planned.counted) planned.like->taken(*planned.counted);
  pulls_.left(planned);
  gangs_.left(planned, error || planned.poisoned);
  state_.plan.end(planned);
  for (const OperandSlot& slot : task.slots())
    if (writes(slot.access)) send_final_home(slot.datum->tile);
  groups_.left(task.group);
  state_.listener.ended(ended);
}

void Scheduler::end_content(PlannedTask& planned, const std::exception_ptr& error) {
  if (planned.spared) return;  // nothing was written
  if (!error && !planned.poisoned && planned.issued) return recovery_.confirm_written(planned);
  state_.listener.failed(*planned.task, planned.poisoned ? nullptr : error, planned.device);
  recovery_.poison_written(planned);
}

/// A partial result was combined, or will never be: its memory is free for others.
void Scheduler::empty_partials(PlannedTask& planned) {
  for (const OperandSlot& slot : planned.task->slots()) {
    Datum& datum = *slot.datum;
    if (!datum.partial) continue;
    if (!planned.issued) datum.filled = false;
    if (datum.filled) continue;  // by the next group
    overwritten(datum);
    memory_.residency().discard(datum.tile);
  }
}

void Scheduler::send_final_home(TileId tile) {
  const TileUses& uses = state_.plan.uses(tile);
  if (!uses_.is_final(tile)) return;
  if (uses.datum->poisoned.load() || !uses.datum->home ||
      memory_.directory().owner(tile) == no_space)
    return;
  memory_.residency().write_final(tile);
}

// Decisions.

void Scheduler::begin_steps() {
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.event("begin_steps"); });
  // An idle device looks around each time: others may have got what it can steal.
  for (DeviceState& device : state_.devices)
    if (device.awaits_source || device.lacks_buffer || device.issued == 0) touch(device);
  turns_.begin();
}

bool Scheduler::step() {
  while (TaskGroup* const group = groups_.next_cancelled()) cancel(*group);
  const LoggedCall call(log_, state_.instructions, [&](ScheduleLog& log) { log.event("step"); });
  if (recovery_.under_way()) {
    turns_.set_more(false);
    return false;
  }
  return turns_.step([&](std::size_t device) { return issue_in_turn(state_.devices[device]); },
                     [&] { return pulls_.place_oldest(); },
                     [&](std::size_t device) { return fill(state_.devices[device]); });
}

/// One task of a device that something happened to since it found none to issue.
bool Scheduler::issue_in_turn(DeviceState& device) {
  if (device.lost) return false;
  if (std::exchange(device.touched, false)) device.open = true;
  if (!device.open) return false;
  pulls_.pull(device);
  device.looked = true;
  device.awaits_source = false;
  device.open = Launcher::wants_more(device) && issue_next(device);
  return device.open;
}

/// Issues the best ready task; false if none could be.
bool Scheduler::issue_next(DeviceState& device) {
  if (PlannedTask* const head = std::exchange(device.head, nullptr)) {
    const bool is_done = try_issue(device, *head);
    if (is_done || device.head) return is_done;
  }
  if (device.claimed) return try_issue(device, gangs_.next(device.id));
  if (order_.is_chosen()) return issue_chosen(device);
  // Tasks whose content is still to come home from elsewhere let others pass, and those that would
  // stand behind enough of their like.
  constexpr int most = 16;
  int looked = 0;
  const PlanSet& ready = state_.plan.on(device.id).ready;
  for (auto next = ready.begin(); next != ready.end() && looked < most; ++looked) {
    if (looked == 0) Plan::fetch_tasks(next, ready.end());
    PlannedTask& planned = **next++;
    if (Launcher::would_queue(device, planned)) continue;
    const bool is_done = try_issue(device, planned);
    if (is_done || device.is_closed()) return is_done;
  }
  return false;
}

/// The same in the order that the policy chooses.
bool Scheduler::issue_chosen(DeviceState& device) {
  order_.begin(device);
  while (PlannedTask* const planned = order_.next()) {
    if (Launcher::would_queue(device, *planned)) continue;
    const bool is_done = try_issue(device, *planned);
    if (is_done || device.is_closed()) return is_done;
  }
  return false;
}

/// True if the task was issued or ended. Else it became the head, or others may pass it.
bool Scheduler::try_issue(DeviceState& device, PlannedTask& planned) {
  const Verdict verdict = planned.gang ? gangs_.issue(planned) : launcher_.issue(device, planned);
  device.lacks_buffer = verdict.awaits == Awaits::buffer;
  switch (verdict.kind) {
    case Verdict::Kind::issued:
      return true;
    case Verdict::Kind::waits:
      if (verdict.awaits == Awaits::source)
        device.awaits_source = true;
      else if (!planned.gang)
        device.head = &planned;
      return false;
    case Verdict::Kind::skipped:
      planned.spared = true;
      state_.listener.ran(planned, {});
      break;
    case Verdict::Kind::failed:
      break;
  }
  end(planned, verdict.error);
  return true;
}

/// What a device that found nothing to issue steals, fetches ahead and cleans; true as long as it
/// issues.
bool Scheduler::fill(DeviceState& device) {
  if (!device.looked || device.lost) return false;
  const auto can_steal = [&] {
    return Launcher::wants_more(device) && !device.is_closed() &&
           state_.plan.on(device.id).ready.empty() && placement_.steal(device);
  };
  if (can_steal() && issue_next(device)) return true;
  if (device.space != host_space) {
    prefetch_.fetch(device);
    memory_.residency().clean_ahead(device.space);
  }
  device.looked = false;
  return false;
}

Error Scheduler::no_buffer() const {
  return {Errc::too_large,
          fmt::format("tiles that aren't at home on the host have no room there: {}",
                      memory_.residency().spill().refusal())};
}

/// What isn't bound to the host runs on a device instead.
bool Scheduler::resolve_standstill() {
  const LoggedCall call(log_, state_.instructions,
                        [&](ScheduleLog& log) { log.event("standstill"); });
  const auto lacks_buffer = [](const DeviceState& device) {
    return device.head && device.lacks_buffer;
  };
  for (DeviceState& device : state_.devices)
    if (lacks_buffer(device) && device.space == host_space && leave_host(*device.head)) return true;
  const auto found = std::ranges::find_if(state_.devices, lacks_buffer);
  if (found == state_.devices.end())
    return gangs_.fail_oldest(std::make_exception_ptr(no_buffer()));
  found->lacks_buffer = false;
  end(*found->head, std::make_exception_ptr(no_buffer()));
  return true;
}

/// Once only: it isn't stolen back.
bool Scheduler::leave_host(PlannedTask& planned) {
  const auto found = std::ranges::find_if(state_.devices, [&](const DeviceState& device) {
    return device.space != host_space && placement_.feasibility().can_run(device, *planned.task);
  });
  if (found == state_.devices.end() || planned.task->device != no_device) return false;
  state_.devices[planned.device].head = nullptr;
  placement_.move(planned, found->id);
  planned.left_host = true;
  touch(*found);
  turns_.set_more(true);
  return true;
}

void Scheduler::validate() const {
  state_.plan.validate();
  pulls_.validate();
  gangs_.validate();
  memory_.validate();
}

}  // namespace quadriga
