// SPDX-License-Identifier: BSD-3-Clause
// src/graph/recorder.cpp: counting, and the trace's events as JSON.
#include "graph/recorder.h"

#include <fmt/format.h>

#include <iterator>

namespace quadriga {
namespace {

constexpr std::string_view reason_names[] = {"stage", "prefetch", "write_back", "evict", "final"};
constexpr std::string_view mark_names[] = {"hit",   "miss",       "prefetch",
                                           "evict", "write_back", "steal"};

bool is_copy(StreamKind kind) noexcept {
  return kind == StreamKind::copy_in || kind == StreamKind::copy_out || kind == StreamKind::peer_in;
}

}  // namespace

std::uint64_t Counters::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const LinkCounters& link : links) sum += link.bytes;
  return sum;
}

std::uint64_t Counters::host_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const LinkCounters& link : links)
    if (link.from == host_space || link.to == host_space) sum += link.bytes;
  return sum;
}

Recorder::Recorder(const Machine& machine, bool tracing)
    : machine_(machine), tracing_(tracing), times_(machine.devices.size()) {}

int Recorder::add_lane(DeviceId device, StreamKind kind, std::string name) {
  auto& lane = *lanes_.emplace_back(std::make_unique<Lane>());
  lane.device = device;
  lane.kind = kind;
  lane.name = std::move(name);
  return static_cast<int>(lanes_.size()) - 1;
}

void Recorder::log(Lane& lane, const Record& record) {
  if (tracing_) lane.records.push_back(record);
}

void Recorder::kernel(int index, const Task& task, Nanoseconds begin, Nanoseconds end) {
  Lane& lane = *lanes_[static_cast<std::size_t>(index)];
  lane.tasks.store(lane.tasks.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  lane.busy.store(lane.busy.load(std::memory_order_relaxed) + (end - begin),
                  std::memory_order_relaxed);
  Record record;
  record.kind = Record::Kind::kernel;
  record.task = task.id;
  record.codelet = task.codelet;
  record.begin = begin;
  record.end = end;
  log(lane, record);
}

void Recorder::computed(DeviceId device, Nanoseconds begin, Nanoseconds end) {
  times_[device].computing.add(begin, end);
  times_[device].either.add(begin, end);
}

void Recorder::kernels(int index, std::uint64_t tasks, Nanoseconds busy) {
  Lane& lane = *lanes_[static_cast<std::size_t>(index)];
  lane.tasks.fetch_add(tasks, std::memory_order_relaxed);
  lane.busy.fetch_add(busy, std::memory_order_relaxed);
}

void Recorder::copy(int index, Reason reason, TileId tile, SpaceId from, SpaceId to,
                    std::uint64_t bytes, Nanoseconds begin, Nanoseconds end) {
  Lane& lane = *lanes_[static_cast<std::size_t>(index)];
  lane.busy.store(lane.busy.load(std::memory_order_relaxed) + (end - begin),
                  std::memory_order_relaxed);
  auto link = lane.links.begin();
  while (link != lane.links.end() && (link->from != from || link->to != to)) ++link;
  if (link == lane.links.end()) link = lane.links.insert(link, {from, to, 0, 0});
  link->bytes += bytes;
  ++link->copies;
  for (std::size_t d = 0; d < machine_.devices.size(); ++d) {
    const SpaceId space = machine_.devices[d].space;
    if (space == host_space || (space != from && space != to)) continue;
    times_[d].copying.add(begin, end);
    times_[d].either.add(begin, end);
  }
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
    for (const LinkCounters& link : lane->links) {
      auto total = counters.links.begin();
      while (total != counters.links.end() && (total->from != link.from || total->to != link.to))
        ++total;
      if (total == counters.links.end())
        total = counters.links.insert(total, {link.from, link.to, 0, 0});
      total->bytes += link.bytes;
      total->copies += link.copies;
    }
  }
  for (std::size_t d = 0; d < times_.size(); ++d) {
    counters.devices[d].copying = times_[d].copying.total();
    counters.devices[d].computing = times_[d].computing.total();
    counters.devices[d].overlap =
        times_[d].copying.total() + times_[d].computing.total() - times_[d].either.total();
  }
}

void Recorder::reset() {
  for (auto& lane : lanes_) {
    lane->tasks = 0;
    lane->busy = 0;
    for (auto& mark : lane->marks) mark = 0;
    lane->links.clear();
    lane->records.clear();
  }
  for (DeviceTime& time : times_) time = {};
}

std::string Recorder::space_name(SpaceId space) const {
  for (const Device& device : machine_.devices)
    if (device.space == space && space != host_space) return device.name;
  return "host";
}

std::string Recorder::event_json(const Lane& lane, std::size_t tid, const Record& record) const {
  const double ts = static_cast<double>(record.begin) / 1e3;
  const double duration = static_cast<double>(record.end - record.begin) / 1e3;
  const int pid = lane.device + 1;
  switch (record.kind) {
    case Record::Kind::kernel:
      return fmt::format(
          R"({{"ph":"X","cat":"kernel","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"task":{}}}}})",
          record.codelet->name, pid, tid, ts, duration, record.task);
    case Record::Kind::copy: {
      const std::string from = space_name(record.from);
      const std::string to = space_name(record.to);
      return fmt::format(
          R"({{"ph":"X","cat":"copy","name":"{0} to {1}","pid":{2},"tid":{3},"ts":{4:.3f},"dur":{5:.3f},"args":{{"from":"{0}","to":"{1}","bytes":{6},"tile":{7},"why":"{8}"}}}})",
          from, to, pid, tid, ts, duration, record.bytes, record.tile, reason_names[record.detail]);
    }
    case Record::Kind::mark:
      break;
  }
  const std::string_view kind = mark_names[record.detail];
  return fmt::format(
      R"({{"ph":"i","cat":"{0}","name":"{0}","pid":{1},"tid":{2},"ts":{3:.3f},"s":"t","args":{{"tile":{4},"task":{5}}}}})",
      kind, pid, tid, ts, record.tile == no_tile ? -1 : static_cast<std::int64_t>(record.tile),
      record.task);
}

std::string Recorder::events_json() const {
  std::string text;
  const auto add = [&](const std::string& event) {
    if (!text.empty()) text += ",\n";
    text += event;
  };
  for (std::size_t d = 0; d < machine_.devices.size(); ++d)
    add(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"{}"}}}})", d + 1,
                    machine_.devices[d].name));
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Lane& lane = *lanes_[i];
    add(fmt::format(
        R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}","kind":"{}"}}}})",
        lane.device + 1, i + 1, lane.name, is_copy(lane.kind) ? name(lane.kind) : "compute"));
    for (const Record& record : lane.records) add(event_json(lane, i + 1, record));
  }
  return text;
}

}  // namespace quadriga
