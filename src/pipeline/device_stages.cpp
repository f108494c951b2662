// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/device_stages.cpp: the dispatch's commands as data and tasks of the engine.
#include "pipeline/device_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/on_host.h"
#include "memory/arena.h"
#include "pipeline/intake.h"
#include "pipeline/links.h"
#include "pipeline/row_load.h"

namespace quadriga {
namespace {

/// The first failure of a group's tasks, or what kept one from running.
std::exception_ptr failure_of(const TaskGroup& group) {
  return group.failure ? group.failure : group.consequence;
}

/// Which of the kernels it was: a task's failure names its codelet.
const std::string& failed_stage(const std::vector<Stage>& stages, const KernelRow& row,
                                const std::exception_ptr& error) {
  std::string text;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    text = known.what();
  } catch (...) {
    text.clear();
  }
  for (const KernelRow::Kernel& kernel : row.kernels)
    if (text.find("'" + stages[kernel.stage].codelet->name + "'") != std::string::npos)
      return stages[kernel.stage].name;
  return stages[row.kernels.front().stage].name;
}

}  // namespace

// A copy home that ends behind the kernels is of what the last one wrote, since a kernel that
// overwrites a block waits for copies from it; one that ended before may be of an older content.
// One that failed is made again, or else the content is lost.
void FlowItem::copied(Datum& datum, SpaceId to, std::exception_ptr failure) noexcept {
  for (const std::unique_ptr<HeldField>& field : stay.held) {
    if (field->datum.load() != &datum) continue;
    if (to == no_space) return lost(*field, std::move(failure));
    if (to != host_space) {
      if (field->is_head && !field->arrived.exchange(true) && stay.heads.fetch_sub(1) == 1)
        mail.post({Mail::Kind::staged, this});
      return;
    }
    field->came_early.store(true);
    if (field->is_leaving.load() && !failure) field_is_home(*field);
    return;
  }
}

void FlowItem::lost(HeldField& field, std::exception_ptr failure) noexcept {
  if (field.is_lost.load()) return;
  field.loss = std::move(failure);
  field.is_lost.store(true);
  if (field.is_leaving.load()) field_is_home(field);
}

void FlowItem::field_is_home(HeldField& field) noexcept {
  if (!field.home.exchange(true) && stay.tails.fetch_sub(1) == 1)
    mail.post({Mail::Kind::left, this});
}

DeviceStages::DeviceStages(const FlowParts& parts, ChunkRouter& router)
    : parts_(parts), router_(router), device_parts_(parts.engine) {
  const std::vector<Stage>& stages = parts.plan.stages();
  const std::vector<Segment>& segments = parts.plan.segments();
  for (std::size_t i = 0; i < segments.size(); ++i)
    if (segments[i].kind == StageKind::kernel)
      rows_.emplace(std::pair(i, std::vector<bool>{}), KernelRow(stages, segments[i]));
  const std::vector<DeviceId> usable = usable_devices(parts.engine.machine(), stages);
  add_constants();
  open(usable);
}

DeviceStages::~DeviceStages() {
  try {
    remove_data();
    for (auto& [name, constant] : constants_) parts_.engine.remove(constant.data, true);
  } catch (...) {
    // The engine is broken, or still in use: its own calls say so.
  }
}

void DeviceStages::add_constants() {
  for (const Stage& stage : parts_.plan.stages())
    for (const FieldUse& use : stage.uses) {
      if (!use.constant.data || constants_.contains(use.name)) continue;
      const Data data =
          EngineAccess::add(parts_.engine, no_device, use.constant, {.resident = true}, true);
      constants_.emplace(use.name, Constant{data, use.constant});
    }
}

/// Chunks have what the arenas are made of or the pipeline's memory, and the constants don't take.
void DeviceStages::open(const std::vector<DeviceId>& usable) {
  const FlowOptions& options = parts_.options;
  StreamMachine found = stream_machine(parts_.engine.machine(), usable);
  std::size_t shared = 0;
  for (const auto& [name, constant] : constants_)
    shared += Arena::rounded(bytes_of(constant.view), Arena::usual_alignment);
  for (StreamDevice& device : found.devices) {
    if (options.most_on_device > 0) device.most_chunks = options.most_on_device;
    if (device.links_in.empty() && device.links_out.empty()) continue;
    std::size_t memory = device.memory_bytes / Arena::usual_alignment * Arena::usual_alignment;
    if (options.memory_bytes > 0) memory = std::min(memory, options.memory_bytes);
    if (memory < shared)
      fail(
          Errc::too_large,
          fmt::format("the pipeline's constants take {} bytes on each device, and its memory is {}",
                      shared, memory));
    device.arena_bytes = device.memory_bytes - shared;
    device.memory_bytes = memory - shared;
  }
  if (options.most_on_link > 0) std::ranges::fill(found.links, options.most_on_link);
  StreamLimits limits{found.links};
  if (options.most_in_all > 0) limits.all = options.most_in_all;
  devices_ = found.ids;
  lost_.assign(devices_.size(), false);
  dispatch_.emplace(std::move(found.devices), std::move(limits), options.order);
}

const KernelRow& DeviceStages::row_of(const FlowItem& item) {
  const Segment& segment = parts_.plan.segments()[item.segment];
  auto place = std::pair(item.segment, item.passed.of(segment));
  const auto known = rows_.find(place);
  if (known != rows_.end()) return known->second;
  return rows_.emplace(std::move(place), KernelRow(parts_.plan.stages(), segment, item.passed))
      .first->second;
}

void DeviceStages::begin(FlowItem& item) {
  const std::vector<Stage>& stages = parts_.plan.stages();
  const Machine& machine = parts_.engine.machine();
  DeviceStay& stay = item.stay;
  try {
    const KernelRow& row = row_of(item);
    stay.params.clear();
    stay.load = {0, 0, std::vector<double>(devices_.size(), 0.0)};
    const std::size_t known = row.end_of_step(0);
    for (std::size_t k = 0; k < row.kernels.size(); ++k) {
      const Stage& stage = stages[row.kernels[k].stage];
      const bool has_params = stage.params && k < known;
      stay.params.push_back(has_params ? stage.params(item.chunk) : std::vector<std::byte>{});
      stay.load.costs_known &= add_seconds(stay.load.kernel_seconds, stage, item.chunk,
                                           stay.params.back(), machine, devices_);
    }
    add_bytes(stay.load, row, item.chunk);
    StreamChunk needs = needs_of(row, item.chunk);
    const bool has_links = machine.devices[devices_.front()].space != host_space;
    needs.has_head &= has_links;
    needs.has_tail &= has_links;
    add_head(needs, stay.load, machine, devices_);
    stay.slot = dispatch_->add(needs);
    stay.has_head = needs.has_head;
    stay.has_tail = needs.has_tail;
  } catch (...) {
    item.fail(std::current_exception(), stages[first_of(item)].name);
    return router_.dropped(item);
  }
  if (stay.has_head) parts_.stats.copy_in(first_of(item)).came();
  if (by_slot_.size() <= stay.slot) by_slot_.resize(stay.slot + 1);
  by_slot_[stay.slot] = &item;
}

void DeviceStages::pump() {
  notice_losses();
  remove_data();
  while (const auto command = dispatch_->next()) {
    FlowItem& item = *by_slot_[command->chunk];
    if (command->kind == StreamCommand::Kind::leave) {
      leave(item);
    } else if (router_.is_unwanted(item.chunk.id())) {
      if (item.stay.has_head) parts_.stats.copy_in(first_of(item)).began(0);
      dispatch_->gone(item.stay.slot);
      router_.dropped(item);
    } else {
      parts_.stats.entered(command->device);
      router_.entered(item);
      enter(item, devices_[command->device]);
    }
  }
  remove_data();
}

/// Chunks that wait go to the devices that are left.
void DeviceStages::notice_losses() {
  for (std::uint16_t d = 0; d < devices_.size(); ++d) {
    if (lost_[d] || !EngineAccess::is_lost(parts_.engine, devices_[d])) continue;
    lost_[d] = true;
    for (const std::uint32_t slot : dispatch_->lose(d)) {
      FlowItem& item = *by_slot_[slot];
      if (item.stay.has_head) parts_.stats.copy_in(first_of(item)).began(0);
      item.fail(
          std::make_exception_ptr(Error(
              Errc::device_lost, fmt::format("device '{}' is lost, and no other has memory for it",
                                             parts_.engine.machine().devices[devices_[d]].name))),
          parts_.plan.stages()[first_of(item)].name);
      dispatch_->gone(slot);
      router_.dropped(item);
    }
  }
}

void DeviceStages::remove_data() {
  if (leaving_.empty()) return;
  parts_.engine.remove(leaving_, true);
  leaving_.clear();
}

/// Submits all kernels, which begins the copies that they need.
void DeviceStages::enter(FlowItem& item, DeviceId device) {
  DeviceStay& stay = item.stay;
  const KernelRow& row = row_of(item);
  stay.device = device;
  stay.entered = parts_.engine.now();
  stay.staged = never;
  if (stay.has_head) parts_.stats.copy_in(first_of(item)).began(stay.entered - item.ready);
  try {
    hold_fields(item, row);
    begin_step(item);
    if (!stay.has_head) staged_now(stay);
    stay.next_kernel = stay.taken = 0;
    submit_step(item, row);
  } catch (...) {
    item.fail(std::current_exception(), parts_.plan.stages()[row.kernels.front().stage].name);
    if (!stay.group) return abandon(item);
  }
  stay.group->close();
}

/// What is submitted from now on ends together.
void DeviceStages::begin_step(FlowItem& item) {
  item.stay.group = std::make_unique<TaskGroup>();
  item.stay.group->on_end = [this, &item] { parts_.mail.post({Mail::Kind::computed, &item}); };
}

void DeviceStages::hold_fields(FlowItem& item, const KernelRow& row) {
  DeviceStay& stay = item.stay;
  int heads = 0;
  for (const RowField& field : row.fields) {
    if (field.returned) {
      stay.held.push_back(std::make_unique<HeldField>(Data{}, false, false));
      continue;
    }
    const View view = field.view_in(item.chunk);
    const bool is_empty = view.rows == 0 || view.cols == 0;
    const Data data = field.is_temporary
                          ? parts_.engine.temporary(view.rows, view.cols, view.dtype)
                          : EngineAccess::add(parts_.engine, no_device, view, {}, true, &item);
    stay.held.push_back(std::make_unique<HeldField>(data,
                                                    field.is_head && stay.has_head && !is_empty,
                                                    field.is_tail && stay.has_tail && !is_empty));
    heads += stay.held.back()->is_head;
  }
  stay.heads.store(heads);
}

std::vector<Operand> DeviceStages::operands_of(const FlowItem& item,
                                               const KernelRow::Kernel& kernel) {
  const DeviceStay& stay = item.stay;
  const bool is_added = std::ranges::count(stay.added, kernel.stage) > 0;
  std::vector<Operand> operands;
  for (const KernelRow::Operand& each : kernel.operands) {
    const Data data = each.constant  ? constants_.at(each.constant->name).data
                      : each.reduced ? device_parts_.of(*each.reduced, item.chunk, stay.device,
                                                        stay.slot, !is_added)
                                     : stay.held[each.field]->data;
    operands.push_back({data, each.access});
  }
  return operands;
}

void DeviceStages::submit_step(FlowItem& item, const KernelRow& row) {
  DeviceStay& stay = item.stay;
  const std::size_t end = row.end_of_step(stay.next_kernel);
  for (std::size_t& k = stay.next_kernel; k < end; ++k) {
    const Stage& stage = parts_.plan.stages()[row.kernels[k].stage];
    try {
      const Future task =
          submit(item, *stage.codelet, operands_of(item, row.kernels[k]), stay.params[k]);
      if (row.kernels[k].adds()) stay.adding.emplace_back(row.kernels[k].stage, task);
    } catch (...) {
      return item.fail(std::current_exception(), stage.name);
    }
  }
}

Future DeviceStages::submit(FlowItem& item, const Codelet& codelet,
                            std::span<const Operand> operands, std::span<const std::byte> params) {
  SubmitOptions options;
  options.device = item.stay.device;
  return EngineAccess::submit(parts_.engine, codelet, operands, params, options,
                              item.stay.group.get());
}

/// A step has ended: what its last kernel returned becomes fields, and the next step begins. False
/// if that was the last.
bool DeviceStages::continue_row(FlowItem& item) {
  DeviceStay& stay = item.stay;
  const KernelRow& row = row_of(item);
  const KernelRow::Kernel& ended = row.kernels[stay.next_kernel - 1];
  const bool has_returned = stay.taken < stay.next_kernel && !ended.returned.empty();
  if (!has_returned && !ended.returned.empty())
    row.fields[ended.returned.front()].returned->filled(item.chunk);
  if (!has_returned && stay.next_kernel == row.kernels.size()) return false;
  const std::vector<Stage>& stages = parts_.plan.stages();
  bool has_tasks = stay.next_kernel < row.kernels.size();
  begin_step(item);
  try {
    if (has_returned) has_tasks |= take_returned(item, row, ended);
    stay.taken = stay.next_kernel;
    const std::size_t end = row.end_of_step(stay.next_kernel);
    for (std::size_t k = stay.next_kernel; k < end; ++k)
      if (const Stage& stage = stages[row.kernels[k].stage]; stage.params)
        stay.params[k] = stage.params(item.chunk);
    submit_step(item, row);
  } catch (...) {
    item.fail(std::current_exception(), stages[ended.stage].name);
    has_tasks = true;  // perhaps: the group knows
  }
  if (has_tasks) return stay.group->close(), true;
  stay.group.reset();
  return false;
}

/// Whether tasks bring it to where later kernels and the tail look for it.
bool DeviceStages::take_returned(FlowItem& item, const KernelRow& row,
                                 const KernelRow::Kernel& kernel) {
  for (const std::size_t field : kernel.returned) hold_returned(item, row, field);
  const std::size_t first = parts_.plan.segments()[item.segment].last;
  item.home.resized(
      item, item.chunk.bytes() + parts_.plan.returned_bytes(item.chunk, item.passed, first));
  return parts_.engine.machine().devices[item.stay.device].space != host_space;
}

void DeviceStages::hold_returned(FlowItem& item, const KernelRow& row, std::size_t index) {
  const RowField& field = row.fields[index];
  DeviceStay& stay = item.stay;
  const bool is_on_host = parts_.engine.machine().devices[stay.device].space == host_space;
  drop_replaced(item, row, field.name, index);
  const View view = field.returned->take(item.chunk, is_on_host, field.is_temporary);
  field.returned->came(item.chunk, view);
  HeldField& held = *stay.held[index];
  held.hold(view.data ? EngineAccess::add(parts_.engine, no_device, view, {}, true, &item)
                      : parts_.engine.temporary(view.rows, view.cols, view.dtype));
  if (is_on_host) return;
  held.is_tail = field.is_tail && view.rows > 0 && view.cols > 0;
  if (held.is_tail) stay.load.bytes_out += static_cast<double>(bytes_of(view));
  const Operand whole{held.data, Access::write};
  submit(item, *field.returned->fill, std::span(&whole, 1),
         field.returned->fill_params(item.chunk));
}

/// A field of that name whose content nobody needs any more; its home may go with it.
void DeviceStages::drop_replaced(FlowItem& item, const KernelRow& row, const std::string& name,
                                 std::size_t before) {
  for (std::size_t i = 0; i < before; ++i) {
    HeldField& held = *item.stay.held[i];
    if (row.fields[i].name != name || !held.data) continue;
    leaving_.push_back(held.data);
    held.hold({});
  }
  remove_data();
}

void DeviceStages::staged_now(DeviceStay& stay) {
  if (stay.staged != never) return;
  stay.staged = parts_.engine.now();
  parts_.stats.staged(stay.device, 1);
}

/// The mail may be of a stay before, which a failure ended meanwhile.
void DeviceStages::staged(FlowItem& item) {
  if (item.stay.heads.load() != 0) return;
  staged_now(item.stay);
  dispatch_->staged(item.stay.slot);
}

void DeviceStages::computed(FlowItem& item) {
  DeviceStay& stay = item.stay;
  staged_now(stay);  // its kernels needed all of it
  const std::exception_ptr error = failure_of(*stay.group);
  stay.group.reset();
  if (!error && !item.error && continue_row(item)) return;
  stay.computed = parts_.engine.now();
  parts_.stats.staged(stay.device, -1);
  if (error && run_again(item)) return;
  if (error) item.fail(error, failed_stage(parts_.plan.stages(), row_of(item), error));
  if (item.error) return abandon(item);
  dispatch_->computed(stay.slot);
  if (stay.has_tail) parts_.stats.copy_out(first_of(item)).came();
}

/// The tail: what kernels wrote goes home.
void DeviceStages::leave(FlowItem& item) {
  DeviceStay& stay = item.stay;
  stay.leaving = parts_.engine.now();
  if (stay.has_tail) parts_.stats.copy_out(first_of(item)).began(stay.leaving - stay.computed);
  std::vector<HeldField*> tails;
  for (const auto& field : stay.held)
    if (field->is_tail) tails.push_back(field.get());
  // As long as no tail has begun, the chunk's input is what it was.
  const bool is_lost =
      std::ranges::any_of(tails, [](auto* field) { return field->is_lost.load(); });
  if (tails.empty() || is_lost) return left(item);
  stay.tails.store(static_cast<int>(tails.size()));
  for (HeldField* const field : tails) {
    field->is_leaving.store(true);
    // It may be home already, as it was evicted or a lost device's kernel ran on the host: then no
    // copy will tell.
    const bool may_be_home =
        field->came_early.load() || EngineAccess::is_lost(parts_.engine, stay.device);
    parts_.engine.final(field->data);
    if (field->is_lost.load() || (may_be_home && has_come_home(parts_.engine, field->data)))
      item.field_is_home(*field);
  }
}

/// Whether the chunk has what it came with: no copy home has begun to overwrite it.
bool DeviceStages::has_input(const FlowItem& item) {
  const KernelRow& row = row_of(item);
  for (std::size_t i = 0; i < item.stay.held.size(); ++i) {
    const HeldField& held = *item.stay.held[i];
    if (!row.fields[i].is_head) continue;
    if (!held.data) return false;  // a field that was returned has replaced it
    if (!row.fields[i].is_tail) continue;
    // What ran again on the host, for the lost device, has written there, too.
    if (held.is_leaving.load() || held.came_early.load() || has_come_home(parts_.engine, held.data))
      return false;
  }
  return true;
}

/// After its device was lost: from its input, on another one. False if it can't.
bool DeviceStages::run_again(FlowItem& item) {
  DeviceStay& stay = item.stay;
  if (item.error || router_.is_unwanted(item.chunk.id()) ||
      !EngineAccess::is_lost(parts_.engine, stay.device) ||
      stay.losses >= static_cast<int>(devices_.size()) || !has_input(item))
    return false;
  ++stay.losses;
  for (const auto& [stage, task] : stay.adding)
    if (!EngineAccess::failed(parts_.engine, task)) stay.added.push_back(stage);
  parts_.stats.repeated();
  release(item);
  begin(item);
  return true;
}

/// Its data leave the engine, and the chunk the dispatch.
void DeviceStages::release(FlowItem& item) {
  for (const auto& field : item.stay.held)
    if (field->data) leaving_.push_back(field->data);
  remove_data();
  item.stay.held.clear();
  item.stay.adding.clear();
  item.stay.heads.store(-1);
  parts_.stats.gone(item.stay.device);
  dispatch_->gone(item.stay.slot);
}

void DeviceStages::abandon(FlowItem& item) {
  release(item);
  router_.dropped(item);
}

void DeviceStages::left(FlowItem& item) {
  std::exception_ptr loss;
  for (const auto& field : item.stay.held)
    if (field->is_tail && field->is_lost.load()) loss = field->loss;
  if (loss && run_again(item)) return;
  if (loss) item.fail(std::move(loss), "copy out");
  const Segment& segment = parts_.plan.segments()[item.segment];
  parts_.stats.left(item, segment, parts_.engine.now());
  release(item);
  router_.passed(item);
}

}  // namespace quadriga
