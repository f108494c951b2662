// SPDX-License-Identifier: BSD-3-Clause
// src/engine/recorder.cpp: counting, and keeping what a trace tells.
#include "engine/recorder.h"

#include <algorithm>
#include <mutex>

namespace quadriga {

void add_link(std::vector<LinkCounters>& links, const LinkCounters& more) {
  auto link = links.begin();
  while (link != links.end() && (link->source != more.source || link->target != more.target))
    ++link;
  if (link == links.end()) link = links.insert(link, {more.source, more.target, 0, 0});
  link->bytes += more.bytes;
  link->copies += more.copies;
}

std::uint64_t Counters::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const LinkCounters& link : links) sum += link.bytes;
  return sum;
}

std::uint64_t Counters::host_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const LinkCounters& link : links)
    if (link.source == host_space || link.target == host_space) sum += link.bytes;
  return sum;
}

Recorder::Recorder(const Machine& machine, bool tracing, Nanoseconds kept)
    : machine_(machine),
      tracing_(tracing),
      kept_(kept),
      device_of_space_(static_cast<std::size_t>(machine.spaces()), no_device),
      times_(machine.devices.size()) {
  for (std::size_t d = 0; d < machine.devices.size(); ++d)
    if (const SpaceId space = machine.devices[d].space; space != host_space)
      device_of_space_[space] = static_cast<DeviceId>(d);
}

int Recorder::add_lane(DeviceId device, StreamKind kind, std::string name) {
  auto& lane = *lanes_.emplace_back(std::make_unique<Lane>());
  lane.device = device;
  lane.kind = kind;
  lane.name = std::move(name);
  return static_cast<int>(lanes_.size()) - 1;
}

void Recorder::log(Lane& lane, const Record& record) {
  std::lock_guard lock(lane.lock);
  drop_old(lane.records, record.end);
  lane.records.push_back(record);
}

void Recorder::kernel(int index, const Task& task, Nanoseconds begin, Nanoseconds end,
                      Nanoseconds expected) {
  Lane& lane = *lanes_[static_cast<std::size_t>(index)];
  lane.tasks.store(lane.tasks.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  lane.busy.store(lane.busy.load(std::memory_order_relaxed) + (end - begin),
                  std::memory_order_relaxed);
  lane.last.store(end, std::memory_order_relaxed);
  if (!tracing_) return;
  Record record;
  record.kind = Record::Kind::kernel;
  record.task = task.id;
  record.name = &*lane.names.insert(task.codelet->name).first;
  record.expected = expected;
  record.begin = begin;
  record.end = end;
  log(lane, record);
}

void Recorder::fine(int index, const FineStretch& stretch, bool counts) {
  Lane& lane = *lanes_[static_cast<std::size_t>(index)];
  if (counts) lane.busy.fetch_add(stretch.end - stretch.begin, std::memory_order_relaxed);
  if (!tracing_) return;
  Record record;
  record.kind = Record::Kind::fine;
  record.detail =
      static_cast<std::uint8_t>((stretch.helps ? fine_helps : 0) | (counts ? fine_counts : 0));
  record.task = stretch.task ? stretch.task->id.load() : 0;
  record.bytes = stretch.tasks;
  record.name = &*lane.names.emplace(stretch.name).first;
  record.begin = stretch.begin;
  record.end = stretch.end;
  log(lane, record);
}

void Recorder::computed(DeviceId device, Nanoseconds begin, Nanoseconds end) {
  times_[device].computing.add(begin, end);
  times_[device].either.add(begin, end);
}

void Recorder::kernels(int index, std::uint64_t tasks, Nanoseconds busy, Nanoseconds end) {
  Lane& lane = *lanes_[static_cast<std::size_t>(index)];
  lane.tasks.fetch_add(tasks, std::memory_order_relaxed);
  lane.busy.fetch_add(busy, std::memory_order_relaxed);
  lane.last.store(end, std::memory_order_relaxed);
}

Nanoseconds Recorder::last_end() const {
  Nanoseconds last = 0;
  for (const auto& lane : lanes_) last = std::max(last, lane->last.load(std::memory_order_relaxed));
  return last;
}

void Recorder::copy(int index, Reason reason, TileId tile, SpaceId from, SpaceId to,
                    std::uint64_t bytes, Nanoseconds begin, Nanoseconds end) {
  Lane& lane = *lanes_[static_cast<std::size_t>(index)];
  lane.busy.store(lane.busy.load(std::memory_order_relaxed) + (end - begin),
                  std::memory_order_relaxed);
  {
    std::lock_guard lock(lane.lock);
    add_link(lane.links, {from, to, bytes, 1});
  }
  for (const SpaceId space : {from, to}) {
    const DeviceId device = device_of_space_[space];
    if (device == no_device) continue;
    times_[device].copying.add(begin, end);
    times_[device].either.add(begin, end);
  }
  if (!tracing_) return;
  Record record;
  record.kind = Record::Kind::copy;
  record.detail = static_cast<std::uint8_t>(reason);
  record.from = from;
  record.to = to;
  record.tile = tile;
  record.bytes = bytes;
  record.begin = begin;
  record.end = end;
  log(lane, record);
}

void Recorder::mark(int index, Mark mark, TileId tile, std::uint64_t task, Nanoseconds when) {
  Lane& lane = *lanes_[static_cast<std::size_t>(index)];
  auto& count = lane.marks[static_cast<std::size_t>(mark)];
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (!tracing_) return;
  Record record;
  record.detail = static_cast<std::uint8_t>(mark);
  record.tile = tile;
  record.task = task;
  record.begin = record.end = when;
  log(lane, record);
}

void Recorder::count(Counters& counters) const {
  counters.devices.assign(machine_.devices.size(), {});
  counters.links.clear();
  for (const auto& lane : lanes_) {
    DeviceCounters& device = counters.devices[lane->device];
    device.tasks += lane->tasks.load(std::memory_order_relaxed);
    device.busy[static_cast<std::size_t>(lane->kind)] += lane->busy.load(std::memory_order_relaxed);
    const auto marked = [&](Mark mark) {
      return lane->marks[static_cast<std::size_t>(mark)].load(std::memory_order_relaxed);
    };
    device.hits += marked(Mark::hit);
    device.misses += marked(Mark::miss);
    device.prefetches += marked(Mark::prefetch);
    device.evictions += marked(Mark::evict);
    device.write_backs += marked(Mark::write_back);
    device.steals += marked(Mark::steal);
    std::lock_guard lock(lane->lock);
    for (const LinkCounters& link : lane->links) add_link(counters.links, link);
  }
  for (std::size_t d = 0; d < times_.size(); ++d) times_[d].tell(counters.devices[d]);
}

// A datum's place is used again for other data, which mostly are of another shape or memory.
std::uint32_t Recorder::number_of(const Datum& datum) {
  const RecordedData now{datum.rows, datum.cols, datum.ld, datum.dtype, datum.home != nullptr};
  const auto [found, is_new] =
      numbers_.try_emplace(&datum, static_cast<std::uint32_t>(data_.size()));
  if (!is_new && data_[found->second] == now) return found->second;
  found->second = static_cast<std::uint32_t>(data_.size());
  data_.push_back(now);
  return found->second;
}

void Recorder::submitted(const Task& task, Nanoseconds when) {
  if (!tracing_ || !keeps_graph()) return;
  Submission made;
  made.task = task.id.load(std::memory_order_relaxed);
  made.when = when;
  made.priority = task.priority;
  made.owner = task.device != no_device ? task.device : task.owner;
  made.host_only = task.codelet->host_only;
  const std::span<const OperandSlot> operands(task.operands, task.operand_count);
  std::vector<View> views;
  for (const OperandSlot& operand : operands)
    views.push_back({nullptr, operand.datum->rows, operand.datum->cols, operand.datum->rows,
                     operand.datum->dtype});
  if (task.codelet->cost) try {
      const Cost cost = task.codelet->cost({views, task.params(), nullptr});
      made.kernel = cost.kernel;
      made.order = cost.order;
      made.volume = cost.volume;
    } catch (...) {  // NOLINT: whoever runs it meets it as well
    }
  for (DeviceId device = 0; device < machine_.devices.size(); ++device)
    if (machine_.devices[device].space != host_space)
      made.workspace = std::max<std::uint64_t>(made.workspace, task.workspace_bytes(device));
  if (task.has_extra && task.extra.after)
    for (const TaskRef& each : *task.extra.after) made.after.push_back(each.id);
  std::lock_guard lock(told_);
  for (const OperandSlot& operand : operands)
    made.operands.push_back({number_of(*operand.datum), operand.access});
  submitted_.push_back(std::move(made));
}

void Recorder::final(const Datum& datum) {
  if (!tracing_ || !keeps_graph()) return;
  std::lock_guard lock(told_);
  if (!submitted_.empty()) submitted_.back().final.push_back(number_of(datum));
}

void Recorder::reset() {
  for (auto& lane : lanes_) {
    lane->tasks = 0;
    lane->busy = 0;
    lane->last = 0;
    for (auto& mark : lane->marks) mark = 0;
    std::lock_guard lock(lane->lock);
    lane->links.clear();
    lane->records.clear();
  }
  for (DeviceTime& time : times_) time = {};
  std::lock_guard lock(told_);
  messages_.clear();
}

}  // namespace quadriga
