// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/use_table.cpp: uses that come, move and go with their tasks; tiles that changed.
#include "schedule/use_table.h"

#include <quadriga/error.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "graph/partials.h"

namespace quadriga {

void UseTable::grow(TileId tile) {
  const std::size_t size = std::max<std::size_t>(tile + 1, tiles_.size() * 2);
  tiles_.resize(size);
  here_.resize(size * places());
}

// Tasks.

void UseTable::add(PlannedTask& planned) {
  Task& task = *planned.task;
  for (int i = 0; i < task.operand_count; ++i) {
    const OperandSlot& slot = task.operands[i];
    PlannedAccess& access = planned.accesses[static_cast<std::size_t>(i)];
    access.task = &planned;
    access.position = planned.position;
    access.version = slot.version;
    access.access = slot.access;
    access.operand = static_cast<std::uint16_t>(i);
    access.behind_host = slot.behind_host;
    if (writes(slot.access)) ++at(slot.datum->tile).writers;
  }
}

void UseTable::plan(PlannedTask& planned) {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    PlannedAccess& access = planned.accesses[i];
    if (!access.datum && !planned.task->reduction(static_cast<int>(i)))
      bind(access, *planned.task->operands[i].datum);
  }
}

void UseTable::bind(PlannedAccess& access, Datum& datum) {
  const DeviceId device = access.task->device;
  access.datum = &datum;
  access.tile = datum.tile;
  TileUses& tile = at(datum.tile);
  Here& there = here(datum.tile, device);
  there.uses.insert(access);
  if (device == no_device || there.uses.first() != &access) return;
  tile.users |= std::uint64_t{1} << device;
  if (there.missing || is_in_sight(access)) note(access.tile, device);
}

void UseTable::unbind(PlannedAccess& access) {
  const DeviceId device = access.task->device;
  Here& there = here(access.tile, device);
  const bool was_first = there.uses.first() == &access;
  there.uses.erase(access);
  if (!was_first) return;
  if (!std::exchange(there.later, true)) later_.emplace_back(access.tile, device);
  if (device == no_device) return;
  if (!there.uses.first()) tiles_[access.tile].users &= ~(std::uint64_t{1} << device);
  if (there.missing) note(access.tile, device);
}

/// To the uses of a device, or of tasks without one.
void UseTable::move(PlannedTask& planned, DeviceId device) {
  for (PlannedAccess& access : planned.accesses)
    if (access.datum) unbind(access);
  planned.device = device;
  for (PlannedAccess& access : planned.accesses)
    if (access.datum) bind(access, *access.datum);
}

/// A partial result is known once the task has a device.
void UseTable::place(PlannedTask& planned, DeviceId device) {
  move(planned, device);
  plan(planned);
  for (int i = 0; i < planned.task->operand_count; ++i)
    if (Reduction* const reduction = planned.task->reduction(i)) {
      Datum* const partial = reduction->partials[device].get();
      bind(planned.accesses[static_cast<std::size_t>(i)],
           partial ? *partial : *planned.task->operands[i].datum);
    }
}

void UseTable::unplace(PlannedTask& planned) {
  for (int i = 0; i < planned.task->operand_count; ++i)
    if (planned.task->reduction(i)) {
      unbind(planned.accesses[static_cast<std::size_t>(i)]);
      planned.accesses[static_cast<std::size_t>(i)].datum = nullptr;
    }
  move(planned, no_device);
}

void UseTable::reposition(PlannedTask& planned, Position position) {
  for (PlannedAccess& access : planned.accesses)
    if (access.datum) unbind(access);
  planned.position = position;
  for (PlannedAccess& access : planned.accesses) {
    access.position = position;
    if (access.datum) bind(access, *access.datum);
  }
}

void UseTable::host_has_left(PlannedTask& planned) {
  for (PlannedAccess& access : planned.accesses) {
    if (!std::exchange(access.behind_host, false) || !access.datum) continue;
    if (planned.device != no_device && here(access.tile, planned.device).missing)
      note(access.tile, planned.device);
  }
}

void UseTable::forget(PlannedTask& planned) {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    if (planned.accesses[i].datum) unbind(planned.accesses[i]);
    if (!writes(slot.access)) continue;
    ++tiles_[slot.datum->tile].versions_issued;
    overwritten(slot.datum->tile);
  }
}

void UseTable::issue(PlannedTask& planned) {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    TileUses& tile = tiles_[slot.datum->tile];
    if (slot.access == Access::write) ++tile.epoch;
    // A partial result's own: the target's content doesn't change before it is combined.
    if (writes(slot.access)) {
      const TileId written = planned.accesses[i].tile;
      tiles_[written].last_writer = planned.number;
      if (written != slot.datum->tile) overwritten(written);
    }
    planned.accesses[i].epoch = tile.epoch;
  }
}

void UseTable::end(Task& task) {
  for (const OperandSlot& slot : task.slots())
    if (writes(slot.access)) --tiles_[slot.datum->tile].writers;
}

// Tiles.

void UseTable::note(TileId tile, DeviceId device) {
  if (std::exchange(here(tile, device).changed, true)) return;
  changed_[device].push_back(tile);
}

/// What is at home on a device is missing there if it isn't valid, without having left.
void UseTable::overwritten(TileId tile) {
  const Datum* const datum = tiles_[tile].datum;
  const bool is_at_home = datum && datum->home_space != host_space;
  for (std::uint64_t rest = tiles_[tile].users; rest != 0; rest &= rest - 1) {
    const auto device = static_cast<DeviceId>(std::countr_zero(rest));
    if (is_at_home || here(tile, device).missing) note(tile, device);
  }
}

std::uint64_t UseTable::next_use(TileId tile, DeviceId device) const {
  if (tile >= tiles_.size()) return UINT64_MAX;
  const PlannedAccess* const here_first = here(tile, device).uses.first();
  const PlannedAccess* const elsewhere_first = here(tile, no_device).uses.first();
  return std::min(here_first ? here_first->position : UINT64_MAX,
                  elsewhere_first ? elsewhere_first->position : UINT64_MAX);
}

std::uint64_t UseTable::next_use_after(TileId tile, DeviceId device, Position position) const {
  if (tile >= tiles_.size()) return UINT64_MAX;
  return std::min(here(tile, device).uses.next_after(position),
                  here(tile, no_device).uses.next_after(position));
}

std::uint64_t UseTable::next_use_behind(const PlannedAccess& use, DeviceId device) const {
  return std::min(here(use.tile, device).uses.next_behind(use),
                  here(use.tile, no_device).uses.next_after(use.position));
}

bool UseTable::wants_before(TileId tile, DeviceId device, double positions) const {
  const PlannedAccess* const use = first_use(tile, device);
  if (!use || users(tile) != std::uint64_t{1} << device) return false;
  const Position next = (*devices_[device].planned().begin())->position;
  if (static_cast<double>(use->position - next) > positions) return false;
  return reads_present(*use);
}

void UseTable::validate() const {
  for (DeviceId device = 0; device < devices_.size(); ++device)
    for (const TileId tile : changed_[device])
      if (!here(tile, device).changed) fail(Errc::internal, "a changed tile is not marked");
  for (TileId tile = 0; tile < tiles_.size(); ++tile) validate(tile);
  const auto later = [this](const auto& use) { return here(use.first, use.second).later; };
  if (std::ranges::count(here_, true, &Here::later) != std::ranges::count_if(later_, later))
    fail(Errc::internal, "a tile that is used later is not in the list, or twice");
}

void UseTable::validate(TileId tile) const {
  for (std::size_t at = 0; at < places(); ++at) {
    const Here& place = here_[tile * places() + at];
    place.uses.validate();
    const PlannedAccess* const first = place.uses.first();
    if (first &&
        (first->tile != tile || std::min<std::size_t>(first->task->device, devices_.size()) != at))
      fail(Errc::internal, "a use stands where another tile's or device's do");
    const bool is_device = at < devices_.size();
    if (is_device && (tiles_[tile].users >> at & 1) != (first != nullptr))
      fail(Errc::internal, "a device that uses a tile is not among its users");
    if (place.changed && (!is_device || std::ranges::count(changed_[at], tile) != 1))
      fail(Errc::internal, "a tile that is marked as changed is not in the list, or twice");
  }
}

}  // namespace quadriga
