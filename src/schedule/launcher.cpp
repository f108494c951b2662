// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/launcher.cpp: from placed to issued.
#include "schedule/launcher.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <utility>

#include "device/reference_machine.h"
#include "graph/brings_home.h"
#include "graph/device_side.h"
#include "graph/task_life.h"
#include "schedule/pace.h"
#include "schedule/variants.h"

namespace quadriga {
namespace {

bool has_nothing_to_combine(const Task& task) noexcept {
  return task.operand_count == 2 && task.operands[1].datum->partial &&
         !task.operands[1].datum->filled;
}

bool has_poisoned_operand(const PlannedTask& planned) noexcept {
  if (poisoned_operand(*planned.task)) return true;
  // A partial result that was lost before it was combined.
  return std::ranges::any_of(planned.accesses, [](const PlannedAccess& access) {
    const Datum& datum = *access.datum;
    return datum.partial && datum.filled && datum.poisoned.load(std::memory_order_acquire);
  });
}

bool may_wait(const PlannedTask& planned, DeviceKind kind) noexcept {
  const Codelet& codelet = *planned.task->codelet;
  return queues(kind) &&
         (codelet.waits_to_queue || (planned.to_init && codelet.init->waits_to_queue));
}

/// Before a longer task ends the driver has queued one for each other stream of the device, so that
/// it is worth a stream of its own. A shorter one is better queued behind the one that it must wait
/// for than on an idle stream, behind an event: recording and awaiting that costs a fifth of
/// queueing such a kernel on CUDA devices, where kernels as short share events
/// (docs/decisions/0026-how-ends-are-noticed.md).
double short_seconds(const Machine& machine, const DeviceState& device) {
  return static_cast<double>(device.streams.size()) *
         (planning_cost(machine).task_seconds + machine.launch_seconds);
}

template <class... Args>
std::exception_ptr make_error(Args&&... args) {
  return std::make_exception_ptr(Error(std::forward<Args>(args)...));
}

}  // namespace

bool Launcher::wants_more(const DeviceState& device) noexcept {
  const int streams = static_cast<int>(device.streams.size());
  return device.issued < pace::tasks_a_stream * streams ||
         (device.issued_seconds < pace::issued_seconds &&
          device.issued < pace::most_a_stream * streams);
}

bool Launcher::would_queue(const DeviceState& device, const PlannedTask& planned) noexcept {
  const ComputeStream& first = device.streams.front();
  return planned.fills && first.issued.size() >= 2 && first.issued_seconds >= pace::issued_seconds;
}

Verdict Launcher::issue(DeviceState& device, PlannedTask& planned) {
  Verdict verdict = look(device, planned);
  if (verdict.kind == Verdict::Kind::issued) issue_reserved(device, planned);
  return verdict;
}

Verdict Launcher::issue_together(std::span<PlannedTask* const> gang, PlannedTask*& culprit) {
  std::vector<Reserved> reserved;
  for (PlannedTask* const planned : gang) {
    Verdict verdict = look(state_.devices[planned->device], *planned);
    if (verdict.kind != Verdict::Kind::issued) {
      take_back(reserved);
      culprit = planned;
      return verdict;
    }
    reserved.push_back({planned, needs_, present_, fetch_seconds_});
  }
  for (Reserved& each : reserved) {
    needs_ = std::move(each.needs);
    present_ = std::move(each.present);
    fetch_seconds_ = each.fetch_seconds;
    issue_reserved(state_.devices[each.planned->device], *each.planned);
  }
  return {Verdict::Kind::issued};
}

/// Invariant 1.
void Launcher::take_back(std::span<const Reserved> reserved) {
  for (const Reserved& each : reserved)
    for (const Need& need : each.needs)
      state_.memory->residency().unpin(need.tile, state_.devices[each.planned->device].space);
}

/// Whether the task can be issued now; if so, its operands are reserved.
Verdict Launcher::look(DeviceState& device, PlannedTask& planned) {
  const Task& task = *planned.task;
  if (state_.cancelled || (task.group && task.group->stopped))
    return {.kind = Verdict::Kind::failed, .error = work_cancelled()};
  if (has_nothing_to_combine(task)) return {Verdict::Kind::skipped};
  if (state_.any_failed && has_poisoned_operand(planned)) return {Verdict::Kind::failed};
  note_needs(device, planned);
  fetch_seconds_ = note_present(device);
  const Outcome outcome = reserve(device);
  if (const Refusal* const refusal = std::get_if<Refusal>(&outcome))
    return {.kind = Verdict::Kind::failed, .error = error_of(planned, *refusal)};
  if (!is_done(outcome)) return {Verdict::Kind::waits, std::get<Awaits>(outcome)};
  return {Verdict::Kind::issued};
}

void Launcher::issue_reserved(DeviceState& device, PlannedTask& planned) {
  const Task& task = *planned.task;
  count_hits(device, planned);
  prediction_.renew(planned);
  const bool is_unknown = planned.learns && planned.seconds == 0;
  planned.ahead_seconds = (is_unknown ? pace::unknown_seconds : planned.seconds) + fetch_seconds_;
  launch(device, planned);
  note_before(planned);
  state_.plan.issue(planned);
  note_content(planned);
  // Nothing waits for events of the CPU, nor for a task that ends later than its kernel.
  const bool ends_later = task.codelet->submits || (task.side() && task.side()->goes_on());
  if (device.space != host_space && !ends_later) state_.listener.issued(planned);
}

bool Launcher::issue_again(DeviceState& device, PlannedTask& planned) {
  note_needs(device, planned);
  if (!is_done(state_.memory->staging().stage(needs_, device.space))) return false;
  planned.device = device.id;
  prediction_.place_on(planned, device.id);
  planned.ahead_seconds = planned.seconds;
  state_.plan.load(device.id).queued_seconds += planned.seconds;
  launch(device, planned);
  note_before(planned);
  note_content(planned);
  return true;
}

bool Launcher::hand_over(const DeviceState& device, PlannedTask& planned) {
  Memory& memory = *state_.memory;
  note_needs(device, planned);
  if (planned.hand_overs_left == PlannedTask::not_begun)
    planned.hand_overs_left =
        static_cast<std::uint32_t>(memory.pool(host_space).residents().size() +
                                   memory.pool(device.space).residents().size() + needs_.size());
  if (planned.hand_overs_left == 0 || !memory.hand_over().make_room(needs_, device.space))
    return false;
  --planned.hand_overs_left;
  return true;
}

/// Room for all operands, and the copies that are missing. Fragments on a device that is otherwise
/// done are no reason to wait: it is emptied, the task fits then.
Outcome Launcher::reserve(DeviceState& device) {
  Memory& memory = *state_.memory;
  Outcome outcome = memory.staging().stage(needs_, device.space);
  if (!awaits(outcome, Awaits::room) || device.issued > 0 ||
      !memory.residency().quiet(device.space))
    return outcome;
  const Awaits drained = memory.evictor().drain(device.space);
  if (drained != Awaits::room) outcome = memory.staging().stage(needs_, device.space);
  if (awaits(outcome, Awaits::room) && drained == Awaits::buffer) return drained;
  return outcome;
}

/// Tiles and accesses of a placed task; who is the first to fill a partial result overwrites it.
void Launcher::note_needs(const DeviceState& device, PlannedTask& planned) {
  needs_.clear();
  planned.to_init = 0;
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const Datum& datum = *planned.accesses[i].datum;
    Access access = planned.task->operands[i].access;
    if (access == Access::reduce && datum.partial && !datum.filled) {
      access = Access::write;
      planned.to_init |= std::uint64_t{1} << i;
    }
    needs_.push_back({datum.tile, access});
  }
  if (planned.task->has_extra) note_workspace(device, planned);
}

/// Invariant 1: reserved as an operand is that nobody has written. It is never written for the
/// directory either, so its block goes when the task lets go of it.
void Launcher::note_workspace(const DeviceState& device, PlannedTask& planned) {
  Memory& memory = *state_.memory;
  const std::size_t bytes = planned.task->workspace_bytes(device.id);
  if (planned.workspace != no_tile && memory.replicas().bytes(planned.workspace) != bytes)
    memory.residency().remove(std::exchange(planned.workspace, no_tile));  // it had another device
  if (bytes == 0) return;
  if (planned.workspace == no_tile)
    planned.workspace = memory.replicas().add({.width_bytes = bytes, .columns = 1});
  needs_.push_back({planned.workspace, Access::write});
}

/// Which operands are there already; seconds to bring the others.
double Launcher::note_present(const DeviceState& device) {
  const Memory& memory = *state_.memory;
  double fetch_seconds = 0;
  present_.clear();
  for (const Need& need : needs_) {
    present_.push_back(memory.directory().valid(need.tile, device.space));
    if (!present_.back() && need.access != Access::write)
      fetch_seconds += memory.transfers().fetch_seconds(need.tile, device.space);
  }
  return fetch_seconds;
}

void Launcher::count_hits(const DeviceState& device, const PlannedTask& planned) {
  if (device.space == host_space) return;
  for (std::size_t i = 0; i < needs_.size(); ++i)
    if (needs_[i].access != Access::write)
      state_.listener.marked(device.id, present_[i] ? Mark::hit : Mark::miss, needs_[i].tile,
                             planned.task->id);
}

void Launcher::launch(DeviceState& device, PlannedTask& planned) {
  const Task& task = *planned.task;
  planned.waits = may_wait(planned, state_.described(device).kind);
  ComputeStream& stream = stream_for(device, planned);
  bind_operands(device, stream.id, planned);
  // Two pointers: a function of more would be allocated.
  planned.run = [this, &planned](const Arguments& arguments) { runner_.run(planned, arguments); };
  Launch launch;
  launch.kernel = &planned.run;
  launch.arguments = {planned.views, task.params(), nullptr};
  launch.arguments.workspace = workspace_of(device, planned);
  launch.cost = planned.cost;
  launch.name = task.codelet->name;
  launch.waits = planned.waits;
  launch.meets = planned.gang != nullptr;
  planned.done = state_.instructions.launch(stream.id, launch);
  stream.issued.emplace_back(planned.done.ticket, &planned);
  stream.issued_seconds += planned.seconds;
  stream.waiting += planned.waits;
  ++device.issued;
  device.issued_seconds += planned.ahead_seconds;
}

/// The stream waits for what the operands need, and the variant sees them where they are.
void Launcher::bind_operands(const DeviceState& device, StreamId stream, PlannedTask& planned) {
  Memory& memory = *state_.memory;
  planned.views.resize(planned.accesses.size());
  for (std::size_t i = 0; i < planned.views.size(); ++i) {
    const Datum& datum = *planned.accesses[i].datum;
    memory.transfers().wait_for(stream, datum.tile, device.space, needs_[i].access);
    planned.accesses[i].source = memory.transfers().ready(datum.tile, device.space);
    const auto pitch = memory.replicas().pitch(datum.tile, device.space) / size_of(datum.dtype);
    planned.views[i] = {memory.replicas().address(datum.tile, device.space), datum.rows, datum.cols,
                        std::max<std::int64_t>(static_cast<std::int64_t>(pitch), datum.rows),
                        datum.dtype};
  }
}

std::span<std::byte> Launcher::workspace_of(const DeviceState& device,
                                            const PlannedTask& planned) const {
  if (planned.workspace == no_tile) return {};
  const Replicas& replicas = state_.memory->replicas();
  return {replicas.address(planned.workspace, device.space), replicas.bytes(planned.workspace)};
}

/// What a task begins with: whether it can run again if its device is lost.
void Launcher::note_before(PlannedTask& planned) {
  const Directory& directory = state_.memory->directory();
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    PlannedAccess& access = planned.accesses[i];
    const Datum& datum = *planned.task->operands[i].datum;
    access.home_before = datum.home && directory.arrived(datum.tile, directory.home(datum.tile));
    if (planned.again) continue;
    TileUses& uses = state_.plan.uses().at(datum.tile);
    access.versions_before = uses.versions_issued;
    if (writes(planned.task->operands[i].access)) uses.rewritten = false;
  }
}

/// What the tiles hold from here on, in the order of issue.
void Launcher::note_content(PlannedTask& planned) {
  const SpaceId space = state_.devices[planned.device].space;
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    Datum& datum = *planned.accesses[i].datum;
    state_.memory->used(datum.tile, space, needs_[i].access, planned.done);
    if (writes(needs_[i].access) && space == host_space && is_detached(*planned.task->codelet))
      state_.plan.uses().at(datum.tile).is_open = true;
    if (needs_[i].access == Access::write || (i == 0 && is_bringing_home(planned.task->codelet)))
      overwritten(datum);
    if (datum.partial) datum.filled = writes(needs_[i].access);  // who reads it combines it
  }
}

/// All that the task being issued needs is there, or made by an earlier task of the stream.
bool Launcher::can_start(const DeviceState& device, const ComputeStream& stream) const {
  const Memory& memory = *state_.memory;
  return std::ranges::all_of(needs_, [&](const Need& need) {
    const Event made = memory.transfers().ready(need.tile, device.space);
    return !made || made.stream == stream.id ||
           (memory.transfers().confirmed(need.tile, device.space) &&
            memory.directory().arrived(need.tile, device.space));
  });
}

/// For tasks that start together the last, so that gangs follow each other in the same order on
/// all devices; for tasks that may wait, too. For one that fills the device and can start the
/// first: such kernels run one after the other, each with all of the device's caches. For tasks
/// that are short, or whose time is learned, that of one which they must wait for and nothing was
/// queued behind: they need no event then. What is learned of short ones is mostly how many were
/// seen to end at once, and would spread a chain over all streams. Else the one with least in it,
/// the first only if the others have more.
ComputeStream& Launcher::stream_for(DeviceState& device, const PlannedTask& planned) {
  if (planned.gang || planned.waits) return device.streams.back();
  if (planned.fills && can_start(device, device.streams.front())) return device.streams.front();
  for (const Need& need : needs_) {
    if (planned.foretold && planned.seconds > short_seconds(state_.machine, device)) break;
    const Event before = state_.memory->transfers().ready(need.tile, device.space);
    if (!before || before.stream >= state_.owners.size()) continue;
    const auto [owner, stream] = state_.owners[before.stream];
    if (owner == &device && !stream->issued.empty() && stream->issued.back().first == before.ticket)
      return *stream;
  }
  // Variants that wait are called one by one: they shall hold up one stream, and nothing on others.
  const bool apart = device.streams.back().waiting > 0 && device.streams.size() > 1;
  return *std::min_element(device.streams.rbegin() + apart, device.streams.rend(),
                           [](const ComputeStream& a, const ComputeStream& b) {
                             return a.issued.size() < b.issued.size();
                           });
}

void Launcher::ended(DeviceState& device, ComputeStream& stream, const PlannedTask& planned) {
  stream.issued.pop_front();
  stream.issued_seconds = stream.issued.empty() ? 0 : stream.issued_seconds - planned.seconds;
  stream.waiting -= planned.waits;
  --device.issued;
  device.issued_seconds -= planned.ahead_seconds;
  if (device.issued == 0) device.issued_seconds = 0;
}

std::exception_ptr Launcher::error_of(const PlannedTask& planned, Refusal refusal) const {
  if (refusal == Refusal::home_lost) return missing_home(planned);
  return no_content();
}

/// Names the operand whose home was in a lost device's memory.
std::exception_ptr Launcher::missing_home(const PlannedTask& planned) const {
  for (const PlannedAccess& access : planned.accesses) {
    const Datum& datum = *access.datum;
    if (!state_.memory->directory().home_lost(datum.tile)) continue;
    const auto device = std::ranges::find(state_.machine.devices, datum.home_space, &Device::space);
    return make_error(
        Errc::device_lost,
        fmt::format("a {} x {} {} tile is in the memory of device '{}', which is gone", datum.rows,
                    datum.cols, name(datum.dtype), device->name));
  }
  return make_error(Errc::internal, "no operand's home is lost");
}

}  // namespace quadriga
