// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow_device.cpp: chunks on devices: copies in, kernels in a row, copies out.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "device/backend.h"
#include "pipeline/flow.h"
#include "schedule/variants.h"

namespace quadriga {
namespace {

/// Of what a block takes in an arena beyond its bytes.
constexpr std::size_t block_granule = 512;
/// Of an arena, that fragments may leave unused.
constexpr double usable_share = 0.95;

std::size_t block_bytes(const View& view) {
  const std::size_t bytes = static_cast<std::size_t>(view.rows) *
                            static_cast<std::size_t>(view.cols) * size_of(view.dtype);
  return (bytes + block_granule - 1) / block_granule * block_granule;
}

bool is_empty(const View& view) { return view.rows == 0 || view.cols == 0; }

}  // namespace

// A copy home that ends behind the kernels is of what the last one wrote, since a kernel that
// overwrites a block waits for copies from it; one that ended before may be of an older content.
void FlowItem::copied(Datum& datum, SpaceId to, std::exception_ptr failure) noexcept {
  for (const std::unique_ptr<HeldField>& field : held) {
    if (EngineAccess::datum(field->data) != &datum) continue;
    if (to != host_space) {
      if (field->is_head && !field->arrived.exchange(true) && heads.fetch_sub(1) == 1)
        flow->post({Mail::Kind::staged, this});
      return;
    }
    field->came_early.store(true);
    if (!field->is_leaving.load()) return;
    if (failure) tail_error = failure;
    field_is_home(*field);
    return;
  }
}

void FlowItem::field_is_home(HeldField& field) noexcept {
  if (!field.home.exchange(true) && tails.fetch_sub(1) == 1) flow->post({Mail::Kind::left, this});
}

/// Accelerators that are meant to run all kernels; where there is none, the host's cores.
void Flow::open_devices() {
  const Machine& machine = engine_.machine();
  std::vector<DeviceId> usable;
  std::vector<DeviceId> hosts;
  for (DeviceId id = 0; id < machine.devices.size(); ++id) {
    const Device& device = machine.devices[id];
    const bool runs = std::ranges::all_of(stages_, [&](const Stage& stage) {
      return stage.kind != StageKind::kernel || offers(machine, device, *stage.codelet);
    });
    if (runs) (device.space == host_space ? hosts : usable).push_back(id);
  }
  if (usable.empty()) usable = hosts;
  if (usable.empty())
    fail(Errc::unavailable, "no device of the engine has a variant of each kernel of the pipeline");
  add_constants();
  StreamMachine found = stream_machine(machine, usable);
  std::size_t shared = 0;
  for (const auto& [name, held] : constants_) shared += block_bytes(held.second);
  for (StreamDevice& device : found.devices) {
    if (device.links_in.empty() && device.links_out.empty()) continue;
    const auto arena =
        static_cast<std::size_t>(usable_share * static_cast<double>(device.memory_bytes));
    device.memory_bytes =
        options_.memory_bytes > 0 ? std::min(arena, options_.memory_bytes) : arena;
    if (device.memory_bytes < shared)
      fail(
          Errc::too_large,
          fmt::format("the pipeline's constants take {} bytes on each device, and its memory is {}",
                      shared, device.memory_bytes));
    device.memory_bytes -= shared;
    device.most_chunks = options_.most_on_device;
  }
  if (options_.most_on_link > 0) std::ranges::fill(found.links, options_.most_on_link);
  StreamLimits limits{found.links};
  if (options_.most_in_all > 0) limits.all = options_.most_in_all;
  devices_ = found.ids;
  stats_.open(devices_);
  dispatch_.emplace(std::move(found.devices), std::move(limits), options_.order);
}

void Flow::add_constants() {
  for (const Stage& stage : stages_)
    for (const FieldUse& use : stage.uses) {
      if (!use.constant.data || constants_.contains(use.name)) continue;
      const View& view = use.constant;
      const Data data = EngineAccess::add(engine_, no_device, view, {.resident = true}, true);
      constants_.emplace(use.name, std::pair(data, view));
    }
}

/// What the chunk takes on a device, and whether anything is to be copied for it.
StreamChunk Flow::needs_of(const FlowItem& item, const Segment& segment) const {
  StreamChunk needs{item.chunk.number(), 0, 0, false, false};
  std::vector<std::string_view> seen;
  for (std::size_t s = segment.first; s < segment.last; ++s)
    for (const FieldUse& use : stages_[s].uses) {
      if (use.constant.data) continue;
      const bool is_known = std::ranges::find(seen, use.name) != seen.end();
      if (use.is_temporary) {
        if (is_known || !use.shape) continue;
        const FieldShape shape = use.shape(item.chunk);
        needs.bytes += block_bytes({nullptr, shape.rows, shape.cols, shape.rows, shape.dtype});
        seen.push_back(use.name);
        continue;
      }
      const View* const view = item.chunk.find(use.name);
      if (!view && is_known) continue;
      const View& field = view ? *view : item.chunk[use.name];
      if (!is_known && reads(use.access)) needs.has_head |= !is_empty(field);
      needs.has_tail |= writes(use.access) && !is_empty(field);
      if (is_known) continue;
      needs.bytes += block_bytes(field);
      seen.push_back(use.name);
    }
  needs.size = static_cast<double>(needs.bytes);
  return needs;
}

/// What the chunk's kernels take on each device by their costs; nothing if a kernel has none.
void Flow::note_costs(FlowItem& item, const Segment& segment) const {
  const Machine& machine = engine_.machine();
  item.kernel_seconds.assign(devices_.size(), 0.0);
  item.costs_known = true;
  for (std::size_t s = segment.first; s < segment.last; ++s) {
    const Stage& stage = stages_[s];
    if (!stage.codelet->cost) {
      item.costs_known = false;
      continue;
    }
    std::vector<View> views;
    for (const FieldUse& use : stage.uses) {
      const View* const view = item.chunk.find(use.name);
      views.push_back(use.constant.data ? use.constant : view ? *view : View{});
    }
    const Cost cost = stage.codelet->cost({views, item.params[s - segment.first]});
    if (cost.kernel == no_work) continue;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const Device& device = machine.devices[devices_[d]];
      if (!machine.has_kernel(device, cost.kernel)) {
        item.costs_known = false;
        continue;
      }
      item.kernel_seconds[d] +=
          machine.launch_seconds +
          machine.kernel_seconds(device, cost.kernel, cost.order, cost.volume);
    }
  }
}

void Flow::note_bytes(FlowItem& item, const Segment& segment) const {
  item.load = {};
  std::vector<std::string_view> seen;
  std::vector<std::string_view> written;
  for (std::size_t s = segment.first; s < segment.last; ++s)
    for (const FieldUse& use : stages_[s].uses) {
      const View* const view = item.chunk.find(use.name);
      if (use.constant.data || !view) continue;
      const double bytes = static_cast<double>(view->rows) * static_cast<double>(view->cols) *
                           static_cast<double>(size_of(view->dtype));
      if (std::ranges::find(seen, use.name) == seen.end()) {
        seen.push_back(use.name);
        if (reads(use.access)) item.load.bytes_in += bytes;
      }
      if (!writes(use.access) || std::ranges::find(written, use.name) != written.end()) continue;
      written.push_back(use.name);
      item.load.bytes_out += bytes;
    }
}

void Flow::begin_device(FlowItem& item, const Segment& segment) {
  try {
    item.params.clear();
    for (std::size_t s = segment.first; s < segment.last; ++s)
      item.params.push_back(stages_[s].params ? stages_[s].params(item.chunk)
                                              : std::vector<std::byte>{});
    note_bytes(item, segment);
    note_costs(item, segment);
    StreamChunk needs = needs_of(item, segment);
    const bool has_links = engine_.machine().devices[devices_.front()].space != host_space;
    needs.has_head &= has_links;
    needs.has_tail &= has_links;
    item.slot = dispatch_->add(needs);
    item.has_head = needs.has_head;
    item.has_tail = needs.has_tail;
  } catch (...) {
    fail_item(item, std::current_exception(), stages_[segment.first].name);
    return drop(item);
  }
  if (by_slot_.size() <= item.slot) by_slot_.resize(item.slot + 1);
  by_slot_[item.slot] = &item;
}

void Flow::pump_devices() {
  remove_data();
  while (const auto command = dispatch_->next()) {
    FlowItem& item = *by_slot_[command->chunk];
    if (command->kind == StreamCommand::Kind::leave)
      leave_device(item);
    else if (is_unwanted(item))
      dispatch_->gone(item.slot), drop(item);
    else
      enter_device(item, devices_[command->device]);
  }
  remove_data();
}

/// The data of chunks that have left, all at once.
void Flow::remove_data() {
  if (leaving_.empty()) return;
  engine_.remove(leaving_, true);
  leaving_.clear();
}

Data Flow::operand_of(FlowItem& item, const FieldUse& use) {
  if (use.constant.data) return constants_.at(use.name).first;
  for (const std::unique_ptr<HeldField>& field : item.held) {
    if (field->name != use.name) continue;
    field->is_tail |= writes(use.access) && !field->is_temporary && item.has_tail;
    return field->data;
  }
  if (use.is_temporary) {
    require(use.shape != nullptr, "temporary '" + use.name + "' is used before it is written");
    const FieldShape shape = use.shape(item.chunk);
    const Data data = engine_.add(shape.rows, shape.cols, shape.dtype);
    item.held.push_back(std::make_unique<HeldField>(use.name, data));
    item.held.back()->is_temporary = true;
    return data;
  }
  const View& view = item.chunk[use.name];
  const Data data = EngineAccess::add(engine_, no_device, view, {}, true, &item);
  item.held.push_back(std::make_unique<HeldField>(use.name, data));
  HeldField& field = *item.held.back();
  field.is_head = reads(use.access) && item.has_head && !is_empty(view);
  field.is_tail = writes(use.access) && item.has_tail && !is_empty(view);
  return data;
}

/// Submits all kernels, which begins the copies that they need.
void Flow::enter_device(FlowItem& item, DeviceId device) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(item.is_ahead, false)) --ahead_;
  }
  item.device = device;
  item.entered = item.staged = clock();
  const Segment& segment = *segments_[item.segment];
  std::vector<std::vector<Operand>> operands;
  try {
    for (std::size_t s = segment.first; s < segment.last; ++s) {
      std::vector<Operand>& of_stage = operands.emplace_back();
      for (const FieldUse& use : stages_[s].uses)
        of_stage.push_back({operand_of(item, use), use.access});
    }
    int heads = 0;
    for (const auto& field : item.held) heads += field->is_head;
    item.heads.store(heads);
    item.group = std::make_unique<TaskGroup>();
    item.group->on_end = [this, &item] { post({Mail::Kind::computed, &item}); };
    submit_kernels(item, segment, operands);
  } catch (...) {
    fail_item(item, std::current_exception(), stages_[segment.first].name);
    if (!item.group) return abandon(item);
  }
  item.group->close();
}

void Flow::submit_kernels(FlowItem& item, const Segment& segment,
                          const std::vector<std::vector<Operand>>& operands) {
  for (std::size_t s = segment.first; s < segment.last; ++s) {
    const Stage& stage = stages_[s];
    try {
      SubmitOptions options;
      options.device = item.device;
      EngineAccess::submit(engine_, *stage.codelet, operands[s - segment.first],
                           item.params[s - segment.first], options, item.group.get());
    } catch (...) {
      fail_item(item, std::current_exception(), stage.name);
      return;
    }
  }
}

void Flow::kernels_ended(FlowItem& item) {
  const Segment& segment = *segments_[item.segment];
  item.computed = clock();
  if (const auto error = failure_of(*item.group))
    fail_item(item, error, failed_stage_of(segment, error));
  item.group.reset();
  if (item.error) return abandon(item);
  dispatch_->computed(item.slot);
}

/// The first failure of its tasks, or what kept one from running.
std::exception_ptr Flow::failure_of(const TaskGroup& group) const {
  if (group.failure) return group.failure;
  return group.consequence;
}

/// Which of the kernels it was: a task's failure names its codelet.
std::string Flow::failed_stage_of(const Segment& segment, const std::exception_ptr& error) const {
  std::string text;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    text = known.what();
  } catch (...) {
    text.clear();
  }
  for (std::size_t s = segment.first; s < segment.last; ++s)
    if (text.find("'" + stages_[s].codelet->name + "'") != std::string::npos)
      return stages_[s].name;
  return stages_[segment.first].name;
}

/// The tail: what kernels wrote goes home.
void Flow::leave_device(FlowItem& item) {
  item.leaving = clock();
  std::vector<HeldField*> tails;
  for (const auto& field : item.held)
    if (field->is_tail) tails.push_back(field.get());
  if (tails.empty()) return left_device(item);
  item.tails.store(static_cast<int>(tails.size()));
  for (HeldField* const field : tails) {
    field->is_leaving.store(true);
    const bool came_early = field->came_early.load();
    EngineAccess::final_later(engine_, field->data);
    // It may have been evicted, and be home already: then no copy will tell.
    if (came_early && EngineAccess::is_home(engine_, field->data)) item.field_is_home(*field);
  }
}

void Flow::abandon(FlowItem& item) {
  for (const auto& field : item.held) leaving_.push_back(field->data);
  remove_data();
  item.held.clear();
  dispatch_->gone(item.slot);
  drop(item);
}

void Flow::left_device(FlowItem& item) {
  if (item.tail_error) fail_item(item, std::exchange(item.tail_error, nullptr), "copy out");
  const Segment& segment = *segments_[item.segment];
  {
    const std::lock_guard lock(results_mutex_);
    stats_.left(item, segment.first, segment.last, clock());
  }
  for (const auto& field : item.held) leaving_.push_back(field->data);
  remove_data();
  item.held.clear();
  dispatch_->gone(item.slot);
  go_on(item);
}

}  // namespace quadriga
