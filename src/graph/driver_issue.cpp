// SPDX-License-Identifier: BSD-3-Clause
// src/graph/driver_issue.cpp: from submitted to issued: predict, place, stage, launch.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "graph/driver.h"
#include "graph/host_pool.h"
#include "graph/variants.h"

namespace quadriga {
namespace {

bool has_nothing_to_combine(const Task& task) noexcept {
  return task.operand_count == 2 && task.operands[1].datum->partial &&
         !task.operands[1].datum->filled;
}

/// A partial result that was lost before it was combined.
bool poisoned_partial(const PlannedTask& planned) noexcept {
  return std::ranges::any_of(planned.accesses, [](const PlannedAccess& access) {
    return access.datum->partial && access.datum->filled && access.datum->poisoned;
  });
}

bool may_wait(const PlannedTask& planned, DeviceKind kind) noexcept {
  const Codelet& codelet = *planned.task->codelet;
  return kind == DeviceKind::cuda &&
         (codelet.cuda_waits || (planned.to_init && codelet.init->cuda_waits));
}

/// Sets the partial results that this task is the first to fill to the neutral element.
void init_partials(const PlannedTask& planned, DeviceKind kind, const Arguments& arguments) {
  for (std::size_t i = 0; i < arguments.operands.size(); ++i)
    if (planned.to_init >> i & 1)
      variant_for(*planned.task->codelet->init,
                  kind)({arguments.operands.subspan(i, 1), {}, arguments.stream});
}

}  // namespace

/// What an empty device, or the host's buffers, must have to hold all operands; one that is named
/// twice counts once, and what is at home there not at all, unless the task adds to a partial
/// result of it.
std::size_t Driver::bytes_needed(const Task& task, SpaceId space) const {
  std::size_t needed = 0;
  for (int i = 0; i < task.operand_count; ++i) {
    const Datum& datum = *task.operands[i].datum;
    const auto same = [&](const OperandSlot& slot) { return slot.datum == &datum; };
    const bool adds_apart = task.operands[i].access == Access::reduce && space != host_space;
    const bool is_there = datum.at_home(space) && !adds_apart;
    if (!is_there && std::none_of(task.operands, task.operands + i, same))
      needed += memory_->rounded(datum.width_bytes(), datum.columns(), space);
  }
  return needed;
}

void Driver::check(const Task& task) {
  const Codelet& codelet = *task.codelet;
  std::size_t needed = 0;
  std::size_t largest = 0;
  bool offered = false;
  std::size_t on_host = 0;
  for (const Device& device : machine_.devices) {
    if (!offers(machine_, device, codelet)) continue;
    offered = true;
    const std::size_t here = bytes_needed(task, device.space);
    if (here <= memory_->capacity(device.space)) return;
    if (device.space == host_space) {
      on_host = here;
      continue;
    }
    needed = std::max(needed, here);
    largest = std::max(largest, memory_->capacity(device.space));
  }
  if (!offered)
    fail(Errc::unavailable,
         fmt::format("no device of this engine has a variant for codelet '{}'", codelet.name));
  if (needed == 0) {
    const std::size_t most = memory_->capacity(host_space);
    fail(Errc::too_large,
         fmt::format("a task '{}' needs {} ({} bytes) of host buffers at once, and {} ({} bytes) "
                     "may be used (host_memory, spill); use smaller tiles",
                     codelet.name, format_bytes(static_cast<double>(on_host)), on_host,
                     format_bytes(static_cast<double>(most)), most));
  }
  fail(Errc::too_large,
       fmt::format("a task '{}' needs {} ({} bytes) of device memory at once, and the largest "
                   "device has {} ({} bytes); use smaller tiles",
                   codelet.name, format_bytes(static_cast<double>(needed)), needed,
                   format_bytes(static_cast<double>(largest)), largest));
}

/// Devices with memory of their own each have a partial result; cores add in place, where the
/// target is at home. Nobody needs one if a single device can do it all.
std::vector<bool> Driver::partial_places(const Codelet& codelet, const Datum& target) const {
  std::vector<bool> places(machine_.devices.size());
  std::size_t able = 0;
  bool can_init = true, can_combine = false;
  for (DeviceId d = 0; d < machine_.devices.size(); ++d) {
    const Device& device = machine_.devices[d];
    const bool is_host = device.space == host_space;
    const std::size_t both =
        2 * memory_->rounded(target.width_bytes(), target.columns(), device.space);
    places[d] = !is_host;
    can_combine |=
        offers(machine_, device, *codelet.combine) && both <= memory_->capacity(device.space);
    if (!offers(machine_, device, codelet)) continue;
    ++able;
    can_init &= is_host || variant_for(*codelet.init, device.kind);
  }
  if (able < 2 || !can_init || !can_combine) places.clear();
  return places;
}

void Driver::predict(PlannedTask& planned) {
  const Task& task = *planned.task;
  std::size_t bytes = 0;
  for (int i = 0; i < task.operand_count; ++i) bytes += task.operands[i].datum->bytes();
  planned.like = &calibration_.of(task.codelet, bytes);
  planned.learns = !task.codelet->cost && task.owner == no_device && task.device == no_device;
  if (!task.codelet->cost) return;
  planned.views.resize(task.operand_count);
  for (std::size_t i = 0; i < planned.views.size(); ++i) {
    const Datum& datum = *task.operands[i].datum;
    planned.views[i] = {nullptr, datum.rows, datum.cols, datum.rows, datum.dtype};
  }
  planned.cost = task.codelet->cost({planned.views, task.params(), nullptr});
}

double Driver::seconds_on(const PlannedTask& planned, DeviceId device) const {
  const Device& where = machine_.devices[device];
  if (!planned.cost.kernel.empty() && machine_.has_kernel(where, planned.cost.kernel))
    return machine_.kernel_seconds(where, planned.cost.kernel, planned.cost.order,
                                   planned.cost.volume);
  return planned.like->seconds(where.kind);
}

Experience Driver::experience_on(const PlannedTask& planned, DeviceId device) const {
  Experience experience = planned.like->experience(machine_.devices[device].kind);
  experience.learns = planned.learns;
  return experience;
}

/// How long its kernel takes by the machine's table; 0 if it isn't there.
Nanoseconds Driver::expected(const PlannedTask& planned) const {
  const std::string_view kernel = planned.cost.kernel;
  if (kernel.empty() || !machine_.has_kernel(machine_.devices[planned.device], kernel)) return 0;
  return static_cast<Nanoseconds>(planned.seconds * 1e9);
}

/// A kernel twice as large would hardly run at a higher rate: none gains beside this one.
bool Driver::fills(const PlannedTask& planned, DeviceId device) const {
  constexpr double gain = 1.1;
  const Cost& cost = planned.cost;
  const Device& where = machine_.devices[device];
  if (where.space == host_space || cost.kernel.empty() || !machine_.has_kernel(where, cost.kernel))
    return false;
  return planned.seconds <=
         gain * machine_.kernel_seconds(where, cost.kernel, 2 * cost.order, cost.volume);
}

/// It is about to be placed there.
void Driver::predict_on(PlannedTask& planned, DeviceId device) {
  planned.seconds = seconds_on(planned, device);
  planned.fills = fills(planned, device);
  if (planned.counted) planned.like->taken(*planned.counted);
  planned.counted = machine_.devices[device].kind;
  planned.like->put(*planned.counted);
}

/// Others of its class may have ended since it was placed.
void Driver::predict_again(PlannedTask& planned) {
  if (!planned.learns) return;
  double& queued = plan_.on(planned.device).queued_seconds;
  queued -= planned.seconds;
  planned.seconds = seconds_on(planned, planned.device);
  queued += planned.seconds;
}

/// Once all devices that are meant to run a codelet are lost, the host does if it can.
bool Driver::takes_over(const DeviceState& device, const Codelet& codelet) const {
  return device.space == host_space && codelet.cpu &&
         std::ranges::all_of(devices_, [&](const DeviceState& each) {
           return each.lost || !offers(machine_, machine_.devices[each.id], codelet);
         });
}

bool Driver::can_run(const DeviceState& device, const Task& task) const {
  const Codelet& codelet = *task.codelet;
  if (device.lost) return false;
  if (!offers(machine_, machine_.devices[device.id], codelet) && !takes_over(device, codelet))
    return false;
  return bytes_needed(task, device.space) <= memory_->capacity(device.space);
}

void Driver::plan(Task& task) {
  PlannedTask& planned = plan_.add(task);
  if (first_ < 0) first_ = now();
  predict(planned);
  const bool has_owner = task.owner != no_device || task.device != no_device;
  int able = 0;
  for (const DeviceState& device : devices_) able += can_run(device, task);
  if (able == 1 || (has_owner && policy_->plans_ahead())) choose_device(planned);
  if (planned.device != no_device) touch(devices_[planned.device]);
}

void Driver::activate(PlannedTask& planned) {
  if (planned.ready) return;
  if (planned.device == no_device) choose_device(planned);
  if (planned.device == no_device) {
    fail_task(planned, std::make_exception_ptr(none_left()));
    return;
  }
  if (!may_issue(devices_[planned.device], planned)) return;
  plan_.make_ready(planned);
  touch(devices_[planned.device]);
}

/// Events don't join the CPU and other devices: there every predecessor must be done.
bool Driver::may_issue(const DeviceState& device, const PlannedTask& planned) const {
  const std::uint64_t pending = planned.task->pending.load(std::memory_order_acquire);
  return device.space == host_space ? pending == 0 : (pending & 0xffffffff) == 0;
}

void Driver::choose_device(PlannedTask& planned) {
  const Task& task = *planned.task;
  std::vector<PlaceCandidate> candidates;
  for (const DeviceState& device : devices_) {
    if (!can_run(device, task) || (task.device != no_device && task.device != device.id &&
                                   can_run(devices_[task.device], task)))
      continue;
    PlaceCandidate candidate;
    candidate.device = device.id;
    candidate.kernel_seconds = seconds_on(planned, device.id);
    candidate.experience = experience_on(planned, device.id);
    candidate.queued_seconds = plan_.on(device.id).queued_seconds / width(device);
    for (int i = 0; i < task.operand_count; ++i) {
      if (task.reduction(i)) continue;
      const TileId tile = task.operands[i].datum->tile;
      if (memory_->directory().valid(tile, device.space))
        candidate.bytes_here += static_cast<double>(memory_->bytes(tile));
      else if (task.operands[i].access != Access::write)
        candidate.fetch_seconds += memory_->fetch_seconds(tile, device.space);
    }
    candidates.push_back(candidate);
  }
  if (candidates.empty()) return;
  const std::size_t choice =
      candidates.size() == 1 ? 0 : policy_->place({candidates, task.owner, planned.activator});
  planned.like->chosen();
  predict_on(planned, candidates[choice].device);
  plan_.place(planned, candidates[choice].device);
}

Outcome Driver::issue(DeviceState& device, PlannedTask& planned) {
  Task& task = *planned.task;
  if (cancelled_ || task.cancelled()) {
    fail_task(planned, std::make_exception_ptr(Error(Errc::cancelled, "the work was cancelled")));
    return Outcome::done;
  }
  if (has_nothing_to_combine(task)) {
    spare_task(planned);
    return Outcome::done;
  }
  if (failures_.any() && (poisoned_operand(task) || poisoned_partial(planned))) {
    fail_task(planned, nullptr);
    return Outcome::done;
  }
  note_needs(planned);
  std::array<bool, 64> here{};
  double fetch_seconds = 0;
  for (std::size_t i = 0; i < needs_.size() && i < here.size(); ++i) {
    here[i] = memory_->directory().valid(needs_[i].tile, device.space);
    if (!here[i] && needs_[i].access != Access::write)
      fetch_seconds += memory_->fetch_seconds(needs_[i].tile, device.space);
  }
  Outcome outcome = memory_->bring(needs_, device.space);
  // Fragments on a device that is otherwise done: empty it, the task fits then (design rule 4).
  if (outcome == Outcome::no_room && device.issued == 0 && memory_->quiet(device.space)) {
    const Outcome drained = memory_->drain(device.space);
    if (drained != Outcome::no_room) outcome = memory_->bring(needs_, device.space);
    if (outcome == Outcome::no_room && drained == Outcome::no_buffer) outcome = drained;
  }
  device.lacks_buffer = outcome == Outcome::no_buffer;
  switch (outcome) {
    case Outcome::done:
      break;
    case Outcome::no_room:
    case Outcome::no_buffer:
      device.head = &planned;
      return outcome;
    case Outcome::no_source:
      return outcome;
    case Outcome::unwritten:
      fail_task(planned,
                std::make_exception_ptr(
                    Error(Errc::invalid_argument, "an operand has no content: nothing wrote it")));
      return Outcome::done;
    case Outcome::home_lost:
      fail_task(planned, std::make_exception_ptr(home_lost(planned)));
      return Outcome::done;
  }
  if (device.space != host_space)
    for (std::size_t i = 0; i < needs_.size() && i < here.size(); ++i)
      if (needs_[i].access != Access::write)
        recorder_.mark(device.streams.front().lane, here[i] ? Mark::hit : Mark::miss,
                       needs_[i].tile, task.id, recorder_.tracing() ? now() : 0);
  predict_again(planned);
  // What may be long isn't queued where nobody can steal it.
  constexpr double unknown_seconds = 1e-3;
  const bool is_unknown = planned.learns && planned.seconds == 0;
  planned.ahead_seconds = (is_unknown ? unknown_seconds : planned.seconds) + fetch_seconds;
  launch(device, planned);
  return Outcome::done;
}

/// Tiles and accesses of a placed task; who is the first to fill a partial result overwrites it.
void Driver::note_needs(PlannedTask& planned) {
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
}

/// There is nothing to combine on a device where no task of the group ran: its task is done.
void Driver::spare_task(PlannedTask& planned) {
  const int lane = devices_[planned.device].streams.front().lane;
  const Nanoseconds when = now();
  recorder_.kernel(lane, *planned.task, when, when);
  planned.spared = true;
  fail_task(planned, nullptr);
}

void Driver::launch(DeviceState& device, PlannedTask& planned) {
  Task& task = *planned.task;
  planned.waits = may_wait(planned, machine_.devices[device.id].kind);
  ComputeStream& stream = stream_for(device, planned);
  planned.views.resize(task.operand_count);
  for (std::size_t i = 0; i < planned.views.size(); ++i) {
    const Datum& datum = *planned.accesses[i].datum;
    memory_->wait_for(stream.id, datum.tile, device.space, needs_[i].access);
    planned.accesses[i].source = memory_->ready(datum.tile, device.space);
    const auto pitch = memory_->pitch(datum.tile, device.space) / size_of(datum.dtype);
    planned.views[i] = {memory_->address(datum.tile, device.space), datum.rows, datum.cols,
                        std::max<std::int64_t>(static_cast<std::int64_t>(pitch), datum.rows),
                        datum.dtype};
  }
  // Two pointers: a function of more would be allocated.
  planned.run = [this, &planned](const Arguments& arguments) {
    const DeviceKind kind = machine_.devices[planned.device].kind;
    const RunningTask running(graph_, planned.task);
    if (planned.to_init) init_partials(planned, kind, arguments);
    run_body(graph_, *planned.task, variant_for(*planned.task->codelet, kind), arguments);
  };
  Launch launch;
  launch.kernel = &planned.run;
  launch.arguments = {planned.views, task.params(), nullptr};
  launch.cost = planned.cost;
  launch.name = task.codelet->name;
  launch.waits = planned.waits;
  Event event;
  try {
    event = backend_->launch(stream.id, launch);
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    if (!planned.again)
      for (const Need& need : needs_) memory_->unpin(need.tile, device.space);
    fail_task(planned, error);
    return;
  }
  planned.stream = stream.id;
  planned.lane = stream.lane;
  stream.issued.emplace_back(event.ticket, &planned);
  stream.issued_seconds += planned.seconds;
  stream.waiting += planned.waits;
  ++device.issued;
  device.issued_seconds += planned.ahead_seconds;
  note_before(planned);
  if (!planned.again) plan_.issue(planned);
  for (std::size_t i = 0; i < needs_.size(); ++i) {
    Datum& datum = *planned.accesses[i].datum;
    memory_->used(datum.tile, device.space, needs_[i].access, event);
    if (needs_[i].access == Access::write) datum.poisoned.store(false, std::memory_order_release);
    if (datum.partial) datum.filled = writes(needs_[i].access);  // who reads it combines it
  }
  // Its successors wait until it is done, and its children are.
  if (device.space == host_space || task.codelet->submits || planned.again) return;
  planned.released = Graph::issued(task, [&](Task& successor) {
    if (!successor.planned) {  // the message that it was submitted is still to be read
      ready(successor, successor.id);
      return;
    }
    successor.planned->activator = device.id;
    activate(*successor.planned);
  });
}

}  // namespace quadriga
