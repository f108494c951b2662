// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/schedule_log.cpp: events and instructions as lines of JSON.
#include "schedule/schedule_log.h"

#include <quadriga/error.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "device/kinds.h"
#include "graph/partials.h"

namespace quadriga {
namespace {

using Json = nlohmann::json;

/// Bytes from the begin of an arena; what lies elsewhere has addresses of its own in each run.
Json offset_in(const SpaceResources& space, const std::byte* address) {
  const bool is_inside = space.base && address >= space.base && address < space.base + space.bytes;
  return is_inside ? Json(address - space.base) : Json();
}

/// Tiles of the partial results that an operand may add to, by device; -1: in place.
Json partials_of(const Task& task, int operand) {
  Json partials = Json::array();
  if (const Reduction* const reduction = task.reduction(operand))
    for (const std::unique_ptr<Datum>& partial : reduction->partials)
      partials.push_back(partial ? Json(partial->tile) : Json(-1));
  return partials;
}

/// By device; empty if it needs none anywhere.
Json workspaces_of(const Task& task, std::size_t devices) {
  Json bytes = Json::array();
  if (task.has_extra && task.extra.workspaces)
    for (std::size_t device = 0; device < devices; ++device)
      bytes.push_back(task.extra.workspaces[device]);
  return bytes;
}

}  // namespace

void ScheduleLog::begin(const Machine& machine, std::string_view policy, std::string_view eviction,
                        std::uint64_t seed, int most_rounds, const MemoryOptions& memory,
                        std::span<const SpaceResources> spaces,
                        std::span<const std::vector<StreamId>> kernel_streams) {
  spaces_.assign(spaces.begin(), spaces.end());
  devices_ = machine.devices.size();
  for (std::size_t device = 0; device < devices_; ++device)
    if (machine.devices[device].space == host_space)
      host_streams_.insert(kernel_streams[device].begin(), kernel_streams[device].end());
  out_ << Json{"machine", Json::parse(machine.to_json())} << '\n';
  out_ << Json{"options", policy, seed, most_rounds, memory.spill_bytes, eviction} << '\n';
  for (const SpaceResources& space : spaces)
    out_ << Json{"space",     space.device, reinterpret_cast<std::uintptr_t>(space.base),
                 space.bytes, space.in,     space.out,
                 space.peers}
         << '\n';
  out_ << Json{"kernel_streams", kernel_streams} << '\n';
}

void ScheduleLog::added(const Datum& datum) {
  out_ << Json{"data",
               datum.tile,
               datum.rows,
               datum.cols,
               datum.ld,
               static_cast<int>(datum.dtype),
               reinterpret_cast<std::uintptr_t>(datum.home),
               datum.home_space,
               datum.partial}
       << '\n';
}

int ScheduleLog::number_of(const Codelet* codelet) {
  if (!codelet) return -1;
  const auto [entry, is_new] = codelets_.try_emplace(codelet, static_cast<int>(codelets_.size()));
  if (!is_new) return entry->second;
  // Parts come first, so that they are known where they are named.
  const int number = entry->second;
  const int init = number_of(codelet->init);
  const int combine = number_of(codelet->combine);
  Json kinds = Json::array();
  for (const DeviceKind kind : all_kinds())
    if (codelet->variant(kind)) kinds.push_back(name(kind));
  out_ << Json{"codelet",
               number,
               codelet->name,
               std::move(kinds),
               static_cast<bool>(codelet->cost),
               codelet->host_only,
               codelet->submits,
               codelet->waits_to_queue,
               init,
               combine,
               is_detached(*codelet)}
       << '\n';
  return number;
}

std::uint64_t ScheduleLog::number_of(const TaskGroup* group) const { return group ? group->id : 0; }

void ScheduleLog::submitted(const Task& task, const Cost& cost) {
  const int codelet = number_of(task.codelet);
  const Gang* const gang = task.gang();
  Json operands = Json::array();
  for (int i = 0; i < task.operand_count; ++i) {
    const OperandSlot& slot = task.operands[i];
    operands.push_back({slot.datum->tile, static_cast<int>(slot.access), slot.version,
                        partials_of(task, i), slot.behind_host});
  }
  out_ << Json{"task",
               task.id.load(),
               codelet,
               task.priority,
               task.device,
               task.owner,
               number_of(task.group),
               cost.kernel,
               cost.order,
               cost.volume,
               std::move(operands),
               gang ? gang->id : 0,
               gang ? gang->size : 0,
               workspaces_of(task, devices_)}
       << '\n';
}

void ScheduleLog::ready(const Task& task, Predecessors predecessors, DeviceId by,
                        Nanoseconds path) {
  out_ << Json{"ready", task.id.load(), static_cast<int>(predecessors), by, path} << '\n';
}

void ScheduleLog::kept(const Task& task, bool failed) {
  out_ << Json{"kept", task.id.load(), failed} << '\n';
}

void ScheduleLog::ended(const Completion& completion) {
  Json line{"ended", completion.event.stream, completion.event.ticket, completion.begin,
            completion.end};
  if (completion.error) {
    Errc code = Errc::task_failed;
    try {
      std::rethrow_exception(completion.error);
    } catch (const Error& error) {
      code = error.code();
    } catch (...) {  // counts as any failure of a task
    }
    line.push_back(static_cast<int>(code));
  }
  out_ << line << '\n';
}

void ScheduleLog::cancelled(const TaskGroup& group) {
  out_ << Json{"cancel_group", number_of(&group)} << '\n';
}

void ScheduleLog::event(std::string_view name, TileId tile) {
  Json line{name};
  if (tile != no_tile) line.push_back(tile);
  out_ << line << '\n';
}

void ScheduleLog::event(std::string_view name, TileId tile, bool flag) {
  out_ << Json{name, tile, flag} << '\n';
}

void ScheduleLog::flag(std::string_view name, bool on) { out_ << Json{name, on} << '\n'; }

void ScheduleLog::refused(std::uint64_t question) { out_ << Json{"refused", question} << '\n'; }

std::string ScheduleLog::line_of(const Instruction& instruction) const {
  Json line{">", instruction.number, instruction.stream, instruction.ticket};
  if (const Event* const awaited = std::get_if<Event>(&instruction.operation)) {
    line.insert(line.end(), {"wait", awaited->stream, awaited->ticket});
  } else if (const Copy* const copy = std::get_if<Copy>(&instruction.operation)) {
    line.insert(line.end(), {"copy", copy->from, copy->to, copy->width_bytes, copy->height,
                             offset_in(spaces_[copy->from], copy->source),
                             offset_in(spaces_[copy->to], copy->target)});
    const SpaceId device = copy->from == host_space ? copy->to : copy->from;
    if (copy->pieces)
      for (const Piece& piece : *copy->pieces)
        line.push_back(offset_in(spaces_[device], piece.memory));
  } else {
    const Launch& launch = std::get<Launch>(instruction.operation);
    const bool on_host = host_streams_.contains(instruction.stream);
    const auto place_of = [&](const void* address) {
      Json where;
      for (const SpaceResources& space : spaces_)
        if (where.is_null() && !on_host)
          where = offset_in(space, static_cast<const std::byte*>(address));
      return where;
    };
    Json operands = Json::array();
    for (const View& view : launch.arguments.operands) operands.push_back(place_of(view.data));
    line.insert(line.end(), {"launch", launch.name, std::move(operands)});
    const std::span<const std::byte> workspace = launch.arguments.workspace;
    if (!workspace.empty()) line.insert(line.end(), {place_of(workspace.data()), workspace.size()});
  }
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void ScheduleLog::instructed(std::span<const Instruction> pending) {
  for (const Instruction& instruction : pending) {
    if (instruction.number <= instructed_) continue;
    instructed_ = instruction.number;
    out_ << line_of(instruction) << '\n';
  }
}

}  // namespace quadriga
