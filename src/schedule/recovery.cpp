// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/recovery.cpp: poison, contents that are lost, tasks that run again.
#include "schedule/recovery.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>

#include "graph/brings_home.h"
#include "graph/device_side.h"
#include "graph/task_life.h"

namespace quadriga {

bool is_device_lost(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& cause) {
    return cause.code() == Errc::device_lost;
  } catch (...) {
    return false;
  }
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& cause) {
    return cause.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

/// Calls visit(DeviceState, PlannedTask&).
template <class Visit>
void Recovery::for_each_in_flight(Visit&& visit) const {
  for (const DeviceState& device : state_.devices)
    for (const ComputeStream& stream : device.streams)
      for (const auto& [ticket, planned] : stream.issued) visit(device, *planned);
}

bool Recovery::under_way() const {
  return std::ranges::any_of(
      state_.devices, [](const DeviceState& device) { return device.lost && device.issued > 0; });
}

void Recovery::source_failed(TileId tile, const Completion& copy) {
  for_each_in_flight([&](const DeviceState&, PlannedTask& planned) {
    for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
      const PlannedAccess& access = planned.accesses[i];
      if (access.datum->tile == tile && access.source == copy.event && !planned.overwrites(i) &&
          !planned.source_error)
        planned.source_error = copy.error;
    }
  });
}

void Recovery::write_back_failed(TileId tile, Reason reason) {
  constexpr int most_tries = 4;
  const SpaceId owner = state_.memory->directory().owner(tile);
  if (owner == no_space || !state_.memory->transfers().confirmed(tile, owner))
    return;  // a new content goes home later
  if (++tries_[tile] < most_tries) {
    state_.memory->write_backs().write_back(tile, reason);
    return;
  }
  tries_.erase(tile);
  state_.memory->lost(tile);
}

void Recovery::content_lost(TileId tile, const std::exception_ptr& error) {
  const bool is_home_lost = state_.memory->directory().home_lost(tile);
  Datum* const datum = state_.plan.uses().at(tile).datum;
  // Its writer fails as well, or runs again, as long as there is a home.
  if (datum && !datum->partial && !is_home_lost && is_being_written(tile)) return;
  // What was combined is not needed any more.
  if (!datum || (datum->partial && !datum->filled) || datum->is_lost()) return;
  lose(*datum);
  datum->failed_by.store(0, std::memory_order_relaxed);
  state_.any_failed = true;
  Errc code = Errc::io;
  try {
    std::rethrow_exception(error);
  } catch (const Error& cause) {
    code = cause.code();
  } catch (...) {  // any other failure of a copy
  }
  state_.listener.content_lost(
      *datum, std::make_exception_ptr(Error(
                  code, fmt::format("{} of a {} x {} {} tile was lost: {}",
                                    is_home_lost ? "the memory" : "the only copy", datum->rows,
                                    datum->cols, name(datum->dtype), text_of(error)))));
}

void Recovery::confirm_written(PlannedTask& planned) {
  for (const PlannedAccess& access : planned.accesses)
    if (writes(access.access) && state_.plan.uses().at(access.tile).last_writer == planned.number)
      state_.memory->transfers().confirm(access.tile);
}

void Recovery::poison_written(PlannedTask& planned) {
  state_.any_failed = true;
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    if (!writes(slot.access)) continue;
    const TileUses& uses = state_.plan.uses().at(slot.datum->tile);
    const std::uint32_t epoch = planned.accesses[i].epoch;
    const bool is_issued = planned.is_among(issued_states);
    const bool brings_home = is_bringing_home(planned.task->codelet);
    if (!is_issued || uses.epoch == epoch) lose(*slot.datum, brings_home && !slot.datum->is_lost());
    // A task that only brings aliases home leaves what there is.
    const bool keeps = brings_home && slot.access == Access::update;
    if (!keeps && (!is_issued || uses.last_writer == planned.number))
      state_.memory->lost(slot.datum->tile);
    if (!is_issued) continue;
    for_each_in_flight([&](const DeviceState&, PlannedTask& other) {
      if (other.number > planned.number) poison_reader(other, *slot.datum, epoch);
    });
  }
}

void Recovery::poison_reader(PlannedTask& planned, const Datum& datum, std::uint32_t epoch) {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    planned.poisoned |=
        slot.datum == &datum && slot.access != Access::write && planned.accesses[i].epoch == epoch;
  }
}

/// Tasks in flight on lost devices, issued later, that write a tile: they will run again as well,
/// or fail.
std::uint32_t Recovery::rewriters(const PlannedTask& planned, TileId tile) const {
  std::uint32_t count = 0;
  for_each_in_flight([&](const DeviceState& device, PlannedTask& other) {
    if (!device.lost || other.number <= planned.number) return;
    for (const OperandSlot& slot : other.task->slots())
      count += writes(slot.access) && slot.datum->tile == tile;
  });
  return count;
}

/// The last task that writes it is in flight.
bool Recovery::is_being_written(TileId tile) {
  const std::uint64_t writer = state_.plan.uses().at(tile).last_writer;
  if (writer == 0) return false;
  const auto makes_it = [&](const PlannedTask& planned) {
    return planned.number == writer && !is_bringing_home(planned.task->codelet);
  };
  bool found = ending_ && makes_it(*ending_);
  for_each_in_flight([&](const DeviceState&, PlannedTask& planned) { found |= makes_it(planned); });
  return found;
}

/// Nobody else has written its operands since, and their contents are somewhere.
bool Recovery::has_what_it_began_with(const PlannedTask& planned) {
  const Directory& directory = state_.memory->directory();
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    const PlannedAccess& access = planned.accesses[i];
    const TileId tile = slot.datum->tile;
    if (access.datum != slot.datum || slot.access == Access::reduce || directory.home_lost(tile))
      return false;
    const TileUses& uses = state_.plan.uses().at(tile);
    const std::uint32_t since = uses.versions_issued - access.versions_before;
    if (since != rewriters(planned, tile) + (writes(slot.access) ? 1 : 0)) return false;
    if (slot.access == Access::write) continue;
    // Not by a task that ran again: what this one made of it came through.
    if (writes(slot.access) && directory.written(tile) && !uses.rewritten) return false;
    if (slot.datum->poisoned.load(std::memory_order_acquire)) return false;
    if (!directory.written(tile) && !access.home_before) return false;
  }
  return true;
}

bool Recovery::is_result_lost(const PlannedTask& planned) {
  if (!state_.devices[planned.device].lost) return false;
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    if (planned.accesses[i].datum != slot.datum || !writes(slot.access)) continue;
    const TileId tile = slot.datum->tile;
    if (!state_.memory->directory().written(tile) || state_.plan.uses().at(tile).rewritten)
      return true;
  }
  return false;
}

bool Recovery::run_again(PlannedTask& planned) {
  Task& task = *planned.task;
  if (state_.cancelled || planned.poisoned || task.codelet->submits ||
      !has_what_it_began_with(planned) || (task.side() && !task.side()->moves_to_host()))
    return false;
  for (const OperandSlot& slot : task.slots())
    if (slot.access != Access::write && !state_.memory->directory().written(slot.datum->tile)) {
      state_.memory->restore_home(slot.datum->tile);
      state_.plan.uses().at(slot.datum->tile).rewritten = true;
    }
  state_.plan.load(planned.device).queued_seconds -= planned.seconds;
  planned.again = true;
  planned.source_error = nullptr;
  for (DeviceState& device : state_.devices) {
    if (task.side() && device.space != host_space) continue;
    if (!feasibility_.can_run(device, task) || !launcher_.issue_again(device, planned)) continue;
    for (const OperandSlot& slot : task.slots())
      if (writes(slot.access)) state_.plan.uses().at(slot.datum->tile).rewritten = true;
    return true;
  }
  state_.plan.load(planned.device).queued_seconds += planned.seconds;
  return false;
}

void Recovery::set_aside(DeviceState& device, const std::exception_ptr& cause,
                         const PlannedTask* ending) {
  device.lost = true;
  device.loss = cause;
  device.drop_head();
  state_.listener.device_lost(device.id);
  state_.listener.noticed(
      fmt::format("device '{}' is set aside: {}", state_.described(device).name, text_of(cause)));
  if (device.space == host_space) return;
  std::vector<TileId> lost;
  state_.memory->space_lost(device.space, lost);
  ending_ = ending;
  for (const TileId tile : lost) content_lost(tile, cause);
  ending_ = nullptr;
}

/// Says why as well: this may be the first that anybody hears of the loss.
std::exception_ptr Recovery::none_left() const {
  std::string what = "no device that could run it is left";
  for (const DeviceState& device : state_.devices)
    if (device.lost) {
      what +=
          fmt::format("; '{}' was lost: {}", state_.described(device).name, text_of(device.loss));
      break;
    }
  return std::make_exception_ptr(Error(Errc::device_lost, what));
}

}  // namespace quadriga
