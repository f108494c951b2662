// SPDX-License-Identifier: BSD-3-Clause
// src/engine/recorder_kept.cpp: the last seconds of a trace, and what they add up to.
#include <algorithm>
#include <mutex>
#include <utility>

#include "base/config.h"
#include "engine/recorder.h"

namespace quadriga {

Nanoseconds kept_of_trace() {
  return std::int64_t{1'000'000'000} * Config::global().integer("trace_seconds");
}

namespace {

/// By Mark.
constexpr std::uint64_t DeviceCounters::*marked[] = {
    &DeviceCounters::hits,      &DeviceCounters::misses,      &DeviceCounters::prefetches,
    &DeviceCounters::evictions, &DeviceCounters::write_backs, &DeviceCounters::steals};

}  // namespace

Nanoseconds Recorder::first_kept() const {
  if (kept_ == 0) return 0;
  Nanoseconds last = 0;
  for (const auto& lane : lanes_) {
    std::lock_guard lock(lane->lock);
    for (const Record& record : lane->records) last = std::max(last, record.end);
  }
  return last - kept_;
}

std::vector<MessageEvent> Recorder::messages() const {
  const Nanoseconds first = first_kept();
  std::lock_guard lock(told_);
  std::vector<MessageEvent> found = messages_;
  std::erase_if(found, [&](const MessageEvent& each) { return each.end < first; });
  return found;
}

void Recorder::count_kept(Counters& counters) const {
  if (!has_dropped()) return;
  counters.links.clear();
  for (DeviceCounters& each : counters.devices) {
    each.tasks = 0;
    for (const auto field : marked) each.*field = 0;
    each.busy = {};
  }
  std::vector<DeviceTime> times(machine_.devices.size());
  const Nanoseconds first = first_kept();
  std::vector<std::pair<const Lane*, Record>> all;
  for (const auto& lane : lanes_) {
    std::lock_guard lock(lane->lock);
    for (const Record& record : lane->records)
      if (record.end >= first) all.emplace_back(lane.get(), record);
  }
  std::ranges::stable_sort(all, {}, [](const auto& each) { return each.second.end; });
  for (const auto& [lane, record] : all) add_kept(*lane, record, counters, times);
  for (std::size_t d = 0; d < times.size(); ++d) times[d].tell(counters.devices[d]);
}

void Recorder::add_kept(const Lane& lane, const Record& record, Counters& counters,
                        std::vector<DeviceTime>& times) const {
  DeviceCounters& device = counters.devices[lane.device];
  const Nanoseconds duration = record.end - record.begin;
  Nanoseconds& busy = device.busy[static_cast<std::size_t>(lane.kind)];
  switch (record.kind) {
    case Record::Kind::kernel:
      ++device.tasks;
      busy += duration;
      times[lane.device].computing.add(record.begin, record.end);
      times[lane.device].either.add(record.begin, record.end);
      return;
    case Record::Kind::fine:
      if (record.detail & fine_counts) busy += duration;
      return;
    case Record::Kind::copy:
      busy += duration;
      add_link(counters.links, {record.from, record.to, record.bytes, 1});
      for (const SpaceId space : {record.from, record.to})
        if (const DeviceId other = device_of_space_[space]; other != no_device) {
          times[other].copying.add(record.begin, record.end);
          times[other].either.add(record.begin, record.end);
        }
      return;
    case Record::Kind::mark:
      ++(device.*marked[record.detail]);
      return;
  }
}

}  // namespace quadriga
