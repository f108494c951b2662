// SPDX-License-Identifier: BSD-3-Clause
// src/graph/driver_again.cpp: tasks that were issued on a device which is lost run again elsewhere,
// as long as what they began with can be had.
//
// Completions come in an order in which nothing comes before what it waited for, so that tasks
// run again in the order in which they were issued: each finds what those before it write again.
// Nothing of their results came through: copies from a lost device fail. Until the last of them has
// run again nothing else is issued: a successor that was ready would meet a content in between.
#include <algorithm>

#include "graph/driver.h"

namespace quadriga {

/// Remembers what a task that is being issued begins with.
void Driver::note_before(PlannedTask& planned) {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    PlannedAccess& access = planned.accesses[i];
    const Datum& datum = *planned.task->operands[i].datum;
    const Directory& directory = memory_->directory();
    access.home_before = datum.home && directory.arrived(datum.tile, directory.home(datum.tile));
    if (planned.again) continue;
    TileUses& uses = plan_.uses(datum.tile);
    access.versions_before = uses.versions_issued;
    if (writes(planned.task->operands[i].access)) uses.rewritten = false;
  }
}

/// Tasks in flight on lost devices, issued later, that write a tile: they will run again as well,
/// or fail.
std::uint32_t Driver::rewriters(const PlannedTask& planned, TileId tile) const {
  std::uint32_t count = 0;
  for (const DeviceState& device : devices_)
    for (const ComputeStream& stream : device.streams)
      for (const auto& [ticket, other] : stream.issued)
        for (const OperandSlot& slot : other->task->slots())
          count += device.lost && other->number > planned.number && writes(slot.access) &&
                   slot.datum->tile == tile;
  return count;
}

/// Some of what was issued on a lost device has not come back yet.
bool Driver::is_recovering() const {
  return std::ranges::any_of(
      devices_, [](const DeviceState& device) { return device.lost && device.issued > 0; });
}

/// The last task that writes it is in flight.
bool Driver::is_being_written(TileId tile) {
  const std::uint64_t writer = plan_.uses(tile).last_writer;
  if (writer == 0) return false;
  if (ending_ && ending_->number == writer) return true;
  return std::ranges::any_of(devices_, [&](const DeviceState& device) {
    return std::ranges::any_of(device.streams, [&](const ComputeStream& stream) {
      return std::ranges::any_of(stream.issued,
                                 [&](const auto& each) { return each.second->number == writer; });
    });
  });
}

/// Nobody else has written its operands since, and their contents are somewhere.
bool Driver::has_what_it_began_with(const PlannedTask& planned) const {
  const Directory& directory = memory_->directory();
  auto& plan = const_cast<Plan&>(plan_);
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    const PlannedAccess& access = planned.accesses[i];
    const TileId tile = slot.datum->tile;
    if (access.datum != slot.datum || slot.access == Access::reduce || directory.home_lost(tile))
      return false;
    const std::uint32_t since = plan.uses(tile).versions_issued - access.versions_before;
    if (since != rewriters(planned, tile) + (writes(slot.access) ? 1 : 0)) return false;
    if (slot.access == Access::write) continue;
    // Not by a task that ran again: what this one made of it came through.
    if (writes(slot.access) && directory.written(tile) && !plan.uses(tile).rewritten) return false;
    if (slot.datum->poisoned.load(std::memory_order_acquire)) return false;
    if (!directory.written(tile) && !access.home_before) return false;
  }
  return true;
}

/// What a task wrote that ended well on a device just before that was lost.
bool Driver::result_is_lost(const PlannedTask& planned) const {
  if (!devices_[planned.device].lost) return false;
  auto& plan = const_cast<Plan&>(plan_);
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    if (planned.accesses[i].datum != slot.datum || !writes(slot.access)) continue;
    const TileId tile = slot.datum->tile;
    if (!memory_->directory().written(tile) || plan.uses(tile).rewritten) return true;
  }
  return false;
}

/// Issues a task of a lost device on another one; false if it can't be.
bool Driver::run_again(PlannedTask& planned) {
  Task& task = *planned.task;
  if (cancelled_ || planned.poisoned || task.codelet->submits || !has_what_it_began_with(planned))
    return false;
  for (const OperandSlot& slot : task.slots())
    if (slot.access != Access::write && !memory_->directory().written(slot.datum->tile)) {
      memory_->restore_home(slot.datum->tile);
      plan_.uses(slot.datum->tile).rewritten = true;
    }
  plan_.on(planned.device).queued_seconds -= planned.seconds;
  planned.again = true;
  planned.doomed = nullptr;
  note_needs(planned);
  for (DeviceState& device : devices_) {
    if (!can_run(device, task) || memory_->bring(needs_, device.space) != Outcome::done) continue;
    planned.device = device.id;
    predict_on(planned, device.id);
    planned.ahead_seconds = planned.seconds;
    plan_.on(device.id).queued_seconds += planned.seconds;
    for (const OperandSlot& slot : task.slots())
      if (writes(slot.access)) plan_.uses(slot.datum->tile).rewritten = true;
    launch(device, planned);
    return true;
  }
  plan_.on(planned.device).queued_seconds += planned.seconds;
  return false;
}

}  // namespace quadriga
