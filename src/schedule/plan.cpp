// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/plan.cpp: adding tasks to the plan, taking them out, next uses.
#include "schedule/plan.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "graph/graph.h"
#include "graph/partials.h"

namespace quadriga {
namespace {

void fetch(const void* what, std::size_t bytes) {
  constexpr std::size_t line = 64;
  for (std::size_t at = 0; at < bytes; at += line)
    __builtin_prefetch(static_cast<const char*>(what) + at, 1);
}

void fetch_accesses(const PlannedTask& planned) {
  fetch(planned.accesses.data(), planned.accesses.size() * sizeof(PlannedAccess));
}

}  // namespace

Plan::Plan(std::size_t devices) : devices_(devices) {
  require(devices <= most_devices,
          fmt::format("a plan for {} devices; at most {} are possible", devices, most_devices));
}

void Plan::grow(TileId tile) {
  const std::size_t size = std::max<std::size_t>(tile + 1, uses_.size() * 2);
  uses_.resize(size);
  here_.resize(size * places());
}

PlannedTask& Plan::add(Task& task, Uses uses_now) {
  for (const OperandSlot& slot : task.slots()) fetch_tile(slot.datum->tile, no_device);
  PlannedTask* planned = nullptr;
  if (free_.empty()) {
    planned = &pool_.emplace_back();
  } else {
    planned = free_.back();
    free_.pop_back();
    constexpr std::size_t ahead = 4;
    if (free_.size() >= ahead) fetch(free_[free_.size() - ahead], sizeof(PlannedTask));
    if (!free_.empty()) fetch_accesses(*free_.back());
    std::vector<PlannedAccess> accesses = std::move(planned->accesses);
    std::vector<View> views = std::move(planned->views);
    std::destroy_at(planned);
    std::construct_at(planned);
    planned->accesses = std::move(accesses);
    planned->views = std::move(views);
  }
  planned->task = &task;
  planned->position = position_of(task);
  planned->accesses.assign(task.operand_count, {});
  for (int i = 0; i < task.operand_count; ++i) {
    Datum& datum = *task.operands[i].datum;
    PlannedAccess& access = planned->accesses[static_cast<std::size_t>(i)];
    access.task = planned;
    access.position = planned->position;
    access.version = task.operands[i].version;
    access.access = task.operands[i].access;
    access.operand = static_cast<std::uint16_t>(i);
    access.behind_host = task.operands[i].behind_host;
    if (writes(task.operands[i].access)) ++uses(datum.tile).writers;
    if (uses_now == Uses::planned && !task.reduction(i)) bind(access, datum);
  }
  task.planned = planned;
  ++waiting_;
  return *planned;
}

void Plan::plan_uses(PlannedTask& planned) {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    PlannedAccess& access = planned.accesses[i];
    if (!access.datum && !planned.task->reduction(static_cast<int>(i)))
      bind(access, *planned.task->operands[i].datum);
  }
}

void Plan::bind(PlannedAccess& access, Datum& datum) {
  const DeviceId device = access.task->device;
  access.datum = &datum;
  access.tile = datum.tile;
  TileUses& tile = uses(datum.tile);
  Here& there = here(datum.tile, device);
  there.uses.insert(access);
  if (device == no_device || there.uses.first() != &access) return;
  tile.users |= std::uint64_t{1} << device;
  if (there.missing || is_in_sight(access)) note(access.tile, device);
}

void Plan::unbind(PlannedAccess& access) {
  const DeviceId device = access.task->device;
  Here& there = here(access.tile, device);
  const bool was_first = there.uses.first() == &access;
  there.uses.erase(access);
  if (device == no_device || !was_first) return;
  if (!there.uses.first()) uses_[access.tile].users &= ~(std::uint64_t{1} << device);
  if (there.missing) note(access.tile, device);
}

/// To those of a device, or of tasks without one.
void Plan::move_uses(PlannedTask& planned, DeviceId device) {
  for (PlannedAccess& access : planned.accesses)
    if (access.datum) unbind(access);
  planned.device = device;
  for (PlannedAccess& access : planned.accesses)
    if (access.datum) bind(access, *access.datum);
}

void Plan::note(TileId tile, DeviceId device) {
  if (std::exchange(here(tile, device).changed, true)) return;
  devices_[device].changed.push_back(tile);
}

/// Another content: what is missing may exist now. What is at home on a device is missing there if
/// it isn't valid, without having left.
void Plan::note_users(TileId tile) {
  const Datum* const datum = uses_[tile].datum;
  const bool is_at_home = datum && datum->home_space != host_space;
  for (std::uint64_t rest = uses_[tile].users; rest != 0; rest &= rest - 1) {
    const auto device = static_cast<DeviceId>(std::countr_zero(rest));
    if (is_at_home || here(tile, device).missing) note(tile, device);
  }
}

void Plan::fetch_uses(PlanSet::const_iterator next, PlanSet::const_iterator end) {
  constexpr int near = 2;
  constexpr int far = 4;
  for (int step = 0; next != end && step <= far; ++step, ++next) {
    if (step == far) fetch(*next, sizeof(PlannedTask));
    if (step == near) fetch_accesses(**next);
  }
}

void Plan::fetch_tasks(PlanSet::const_iterator next, PlanSet::const_iterator end) {
  // Each step needs what the one before it, of the task behind, has brought.
  for (int step = 0; next != end && step <= 6; ++step, ++next) {
    const PlannedTask* const planned = *next;
    switch (step) {
      case 6:
        fetch(planned, sizeof(PlannedTask));
        break;
      case 4:
        fetch_accesses(*planned);
        fetch(planned->views.data(), planned->views.size() * sizeof(View));
        fetch_ahead(planned->task);
        break;
      case 3:
        if (const Edge* const edge = Graph::last_edge(*planned->task)) fetch(edge, sizeof(Edge));
        break;
      case 2:
        if (const Edge* const edge = Graph::last_edge(*planned->task))
          fetch_ahead(&edge->successor());
        break;
      case 1:
        if (const Edge* const edge = Graph::last_edge(*planned->task))
          if (const PlannedTask* const after = edge->successor().planned)
            fetch(after, sizeof(PlannedTask));
        break;
      default:
        break;
    }
  }
}

void Plan::forget_uses(PlannedTask& planned) {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    if (planned.accesses[i].datum) unbind(planned.accesses[i]);
    if (!writes(slot.access)) continue;
    ++uses_[slot.datum->tile].versions_issued;
    note_users(slot.datum->tile);
  }
}

void Plan::leave(DevicePlan& device, PlannedTask& planned) {
  device.planned.erase(planned.position);
  if (planned.ready) device.ready.erase(planned.position);
  device.learning -= planned.learns;
  if (planned.position <= device.horizon.until) --device.horizon.tasks;
}

void Plan::issue(PlannedTask& planned) {
  forget_uses(planned);
  leave(devices_[planned.device], planned);
  planned.issued = true;
  planned.number = ++issues_;
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    TileUses& tile = uses_[slot.datum->tile];
    if (slot.access == Access::write) ++tile.epoch;
    // A partial result's own: the target's content doesn't change before it is combined.
    if (writes(slot.access)) {
      const TileId written = planned.accesses[i].tile;
      uses_[written].last_writer = planned.number;
      if (written != slot.datum->tile) note_users(written);
    }
    planned.accesses[i].epoch = tile.epoch;
  }
  --waiting_;
}

void Plan::end(PlannedTask& planned) {
  if (!planned.issued) {
    unplace(planned);
    forget_uses(planned);
    --waiting_;
  } else {
    devices_[planned.device].queued_seconds -= planned.seconds;
  }
  for (const OperandSlot& slot : planned.task->slots())
    if (writes(slot.access)) --uses_[slot.datum->tile].writers;
  planned.task->planned = nullptr;
  planned.task = nullptr;
  free_.push_back(&planned);
}

void Plan::place(PlannedTask& planned, DeviceId device) {
  move_uses(planned, device);
  plan_uses(planned);
  for (int i = 0; i < planned.task->operand_count; ++i)
    if (Reduction* const reduction = planned.task->reduction(i)) {
      Datum* const partial = reduction->partials[device].get();
      bind(planned.accesses[static_cast<std::size_t>(i)],
           partial ? *partial : *planned.task->operands[i].datum);
    }
  DevicePlan& there = devices_[device];
  there.planned.insert(planned.position, &planned);
  if (planned.position <= there.horizon.until) ++there.horizon.tasks;
  if (planned.ready) there.ready.insert(planned.position, &planned);
  there.queued_seconds += planned.seconds;
  there.learning += planned.learns;
}

void Plan::unplace(PlannedTask& planned) {
  if (planned.device == no_device) return;
  DevicePlan& device = devices_[planned.device];
  leave(device, planned);
  device.queued_seconds -= planned.seconds;
  for (int i = 0; i < planned.task->operand_count; ++i)
    if (planned.task->reduction(i)) {
      unbind(planned.accesses[static_cast<std::size_t>(i)]);
      planned.accesses[static_cast<std::size_t>(i)].datum = nullptr;
    }
  move_uses(planned, no_device);
}

const PlannedTask& Plan::retreat(DeviceId device) {
  auto& [until, tasks] = devices_[device].horizon;
  const PlannedTask& last = *devices_[device].planned.last_until(until);
  until = last.position - 1;
  --tasks;
  return last;
}

/// What it follows has ended, accesses of the host's among them.
void Plan::host_has_left(PlannedTask& planned) {
  for (PlannedAccess& access : planned.accesses) {
    if (!std::exchange(access.behind_host, false) || !access.datum) continue;
    if (planned.device != no_device && here(access.tile, planned.device).missing)
      note(access.tile, planned.device);
  }
}

void Plan::make_ready(PlannedTask& planned) {
  planned.ready = true;
  if (planned.task->behind_hold.load(std::memory_order_relaxed)) [[unlikely]]
    host_has_left(planned);
  if (planned.device != no_device)
    devices_[planned.device].ready.insert(planned.position, &planned);
}

void Plan::reposition(PlannedTask& planned, Position position) {
  const DeviceId device = planned.device;
  unplace(planned);
  for (PlannedAccess& access : planned.accesses)
    if (access.datum) unbind(access);
  planned.position = position;
  for (PlannedAccess& access : planned.accesses) {
    access.position = position;
    if (access.datum) bind(access, *access.datum);
  }
  if (device != no_device) place(planned, device);
}

std::uint64_t Plan::next_use(TileId tile, DeviceId device) const {
  if (tile >= uses_.size()) return UINT64_MAX;
  const PlannedAccess* const here_first = here(tile, device).uses.first();
  const PlannedAccess* const elsewhere_first = here(tile, no_device).uses.first();
  return std::min(here_first ? here_first->position : UINT64_MAX,
                  elsewhere_first ? elsewhere_first->position : UINT64_MAX);
}

std::uint64_t Plan::next_use_after(TileId tile, DeviceId device, Position position) const {
  if (tile >= uses_.size()) return UINT64_MAX;
  return std::min(here(tile, device).uses.next_after(position),
                  here(tile, no_device).uses.next_after(position));
}

bool Plan::wants_before(TileId tile, DeviceId device, double positions) const {
  const PlannedAccess* const use = first_use(tile, device);
  if (!use || users(tile) != std::uint64_t{1} << device) return false;
  const Position next = (*devices_[device].planned.begin())->position;
  if (static_cast<double>(use->position - next) > positions) return false;
  return reads_present(*use);
}

void Plan::validate() const {
  for (DeviceId d = 0; d < devices_.size(); ++d) {
    const DevicePlan& device = devices_[d];
    device.planned.validate();
    device.ready.validate();
    for (const PlannedTask* planned : device.ready)
      if (planned->device != d || planned->issued || !device.planned.contains(planned->position))
        fail(Errc::internal, "a ready task is not in its device's plan");
    validate_horizon(d);
    for (const TileId tile : device.changed)
      if (!here(tile, d).changed) fail(Errc::internal, "a changed tile is not marked");
  }
  for (TileId tile = 0; tile < uses_.size(); ++tile) validate_uses(tile);
}

void Plan::validate_horizon(DeviceId device) const {
  const DevicePlan& there = devices_[device];
  const auto in_sight = std::ranges::count_if(there.planned, [&](const PlannedTask* planned) {
    return planned->position <= there.horizon.until;
  });
  if (static_cast<std::size_t>(in_sight) != there.horizon.tasks)
    fail(Errc::internal, "the tasks up to the horizon are counted wrong");
}

void Plan::validate_uses(TileId tile) const {
  for (std::size_t at = 0; at < places(); ++at) {
    const Here& place = here_[tile * places() + at];
    place.uses.validate();
    const PlannedAccess* const first = place.uses.first();
    if (first &&
        (first->tile != tile || std::min<std::size_t>(first->task->device, devices_.size()) != at))
      fail(Errc::internal, "a use stands where another tile's or device's do");
    const bool is_device = at < devices_.size();
    if (is_device && (uses_[tile].users >> at & 1) != (first != nullptr))
      fail(Errc::internal, "a device that uses a tile is not among its users");
    if (place.changed && (!is_device || std::ranges::count(devices_[at].changed, tile) != 1))
      fail(Errc::internal, "a tile that is marked as changed is not in the list, or twice");
  }
}

}  // namespace quadriga
