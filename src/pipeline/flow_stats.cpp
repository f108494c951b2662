// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow_stats.cpp: counting, and what the counts say of the bound.
#include "pipeline/flow_stats.h"

#include <algorithm>
#include <utility>

namespace quadriga {
namespace {

constexpr double nano = 1e-9;
/// A stage's mean before its first chunk: one chunk a task, until it is known.
constexpr Nanoseconds quick_until_known = 1'000'000;
/// Failures that are kept to be told; all are counted.
constexpr std::size_t most_failures = 1000;

std::string kind_of(StageKind kind) {
  constexpr const char* names[] = {"kernel", "parallel", "serial", "serial_in_order", "flat_map"};
  return names[static_cast<int>(kind)];
}

double seconds_of(const std::atomic<Nanoseconds>& time) {
  return static_cast<double>(time.load(std::memory_order_relaxed)) * nano;
}

/// `at_once`: how many chunks it can process at once; `seconds`: of the run.
StageStats stage_of(std::string name, std::string kind, const StageCounter& counter, double at_once,
                    double seconds) {
  StageStats told{std::move(name), std::move(kind)};
  told.chunks = counter.chunks.load(std::memory_order_relaxed);
  told.busy_seconds = seconds_of(counter.busy);
  told.waiting_seconds = seconds_of(counter.waited);
  told.reserve_seconds = seconds_of(counter.reserving);
  const double all = seconds * std::max(1.0, at_once);
  told.acquire_seconds = std::max(0.0, all - told.busy_seconds - told.reserve_seconds);
  told.queue = static_cast<std::size_t>(std::max<std::int64_t>(0, counter.queue.load()));
  told.latency_median = counter.latency.quantile(0.5);
  told.latency_99 = counter.latency.quantile(0.99);
  if (seconds <= 0) return told;
  told.mean_queue = told.waiting_seconds / seconds;
  told.chunks_per_second = static_cast<double>(told.chunks) / seconds;
  told.occupancy = told.busy_seconds / all;
  return told;
}

}  // namespace

FlowStats::FlowStats(const Machine& machine, const std::vector<Stage>& stages, int threads)
    : machine_(machine),
      stages_(stages),
      threads_(threads),
      are_split_(std::ranges::count(stages, StageKind::flat_map, &Stage::kind) > 0) {
  for (std::size_t i = 0; i <= stages.size(); ++i) counters_.emplace_back();
  for (std::size_t i = 0; i < stages.size(); ++i)
    if (stages[i].kind == StageKind::kernel && (i == 0 || stages[i - 1].kind != StageKind::kernel))
      copies_[i];
}

void FlowStats::open(std::vector<DeviceId> devices) {
  devices_ = std::move(devices);
  on_device_.assign(devices_.size(), 0);
  staged_.assign(devices_.size(), 0);
  last_computed_.assign(devices_.size(), 0);
  done_.busy.assign(devices_.size(), 0.0);
  done_.sizes.assign(devices_.size(), 0.0);
  by_device_.assign(devices_.size(), 0);
  done_.load.emplace(machine_, devices_);
}

Nanoseconds FlowStats::mean(std::size_t stage) const {
  const StageCounter& counter = counters_[stage + 1];
  const auto chunks = static_cast<Nanoseconds>(counter.chunks.load(std::memory_order_relaxed));
  return chunks > 0 ? counter.busy.load(std::memory_order_relaxed) / chunks : quick_until_known;
}

void FlowStats::end(Nanoseconds now) {
  const std::lock_guard lock(mutex_);
  if (end_ < 0) end_ = std::max(now, told_);
}

std::vector<ChunkFailure> FlowStats::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

void FlowStats::arrived(Nanoseconds latency) {
  const std::lock_guard lock(mutex_);
  ++arrived_;
  latency_.add(latency);
}

void FlowStats::failed(const ChunkFailure& failure) {
  const std::lock_guard lock(mutex_);
  ++failed_;
  if (failures_.size() < most_failures) failures_.push_back(failure);
}

std::size_t FlowStats::place_of(DeviceId device) const {
  return static_cast<std::size_t>(std::ranges::find(devices_, device) - devices_.begin());
}

void FlowStats::entered(std::size_t place) {
  const std::lock_guard lock(mutex_);
  most_on_device_ = std::max(most_on_device_, ++on_device_[place]);
}

void FlowStats::gone(DeviceId device) {
  const std::lock_guard lock(mutex_);
  --on_device_[place_of(device)];
}

void FlowStats::staged(DeviceId device, int change) {
  const std::lock_guard lock(mutex_);
  staged_[place_of(device)] += change;
}

void FlowStats::left(const FlowItem& item, const Segment& segment, Nanoseconds now) {
  const DeviceStay& stay = item.stay;
  const std::size_t first = segment.first;
  const std::lock_guard lock(mutex_);
  const std::size_t d = place_of(stay.device);
  const Nanoseconds began = std::max(stay.staged, last_computed_[d]);
  const Nanoseconds computing = std::max<Nanoseconds>(0, stay.computed - began);
  last_computed_[d] = std::max(last_computed_[d], stay.computed);
  if (stay.has_head) copy_in(first).worked(stay.staged - stay.entered, stay.staged - item.ready);
  if (stay.has_tail) copy_out(first).worked(now - stay.leaving, now - stay.computed);
  // A row of kernels is one to the stream: its time is told with its first.
  of(first).waited.fetch_add(began - stay.staged, std::memory_order_relaxed);
  of(first).worked(computing, stay.computed - stay.staged);
  for (std::size_t s = first + 1; s < segment.last; ++s)
    if (item.passed.has(s)) of(s).worked(0, 0);
  const double bytes = stay.load.bytes_in + stay.load.bytes_out;
  done_.busy[d] += static_cast<double>(computing) * nano;
  done_.sizes[d] += bytes;
  done_.sizes_in_all += bytes;
  ++by_device_[d];
  done_.costs_known &= stay.load.costs_known;
  done_.load->add(stay.load);
}

/// The bound takes longest; the run doesn't wait for it.
PipelineStats FlowStats::tell(Nanoseconds now) const {
  PipelineStats stats;
  std::unique_lock lock(mutex_);
  told_ = std::max(told_, now);
  stats.seconds = static_cast<double>((end_ >= 0 ? end_ : now) - begin_) * nano;
  tell_stages(stats);
  stats.chunks = arrived_;
  stats.failed = failed_;
  stats.dropped = dropped_.load();
  stats.missed = missed_.load();
  stats.repeated = repeated_.load();
  stats.ended = end_ >= 0    ? counters_.front().chunks.load()
                : are_split_ ? released_.load()
                             : stats.chunks + stats.failed + stats.dropped + stats.missed;
  stats.latency_median = latency_.quantile(0.5);
  stats.latency_99 = latency_.quantile(0.99);
  stats.by_device = by_device_;
  stats.most_on_device = most_on_device_;
  const Done done = done_;
  lock.unlock();
  tell_bound(done, stats);
  return stats;
}

void FlowStats::tell_stages(PipelineStats& stats) const {
  const auto devices = static_cast<double>(devices_.size());
  const auto add = [&](const std::string& name, const std::string& kind,
                       const StageCounter& counter, double at_once) {
    stats.stages.push_back(stage_of(name, kind, counter, at_once, stats.seconds));
  };
  add("source", "source", counters_[0], 1);
  const Copies* row = nullptr;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const StageKind kind = stages_[s].kind;
    if (kind == StageKind::kernel && !row) {
      row = &copies_.at(s);
      add("copy in", "copy in", row->in, devices);
    }
    add(stages_[s].name, kind_of(kind), counters_[s + 1],
        kind == StageKind::kernel     ? devices
        : kind == StageKind::parallel ? threads_
                                      : 1);
    if (kind == StageKind::kernel && copies_.contains(s))
      // One of those on a device runs, the others wait.
      for (const int staged : staged_)
        stats.stages.back().queue += static_cast<std::size_t>(std::max(0, staged - 1));
    if (row && (s + 1 == stages_.size() || stages_[s + 1].kind != StageKind::kernel))
      add("copy out", "copy out", std::exchange(row, nullptr)->out, devices);
  }
}

/// Kernels whose cost nobody knows are charged what they took, by bytes.
void FlowStats::tell_bound(const Done& done, PipelineStats& stats) const {
  std::vector<StreamResource> resources;
  std::size_t devices = 1;
  if (done.load && done.load->chunks() > 0) {
    resources = done.load->resources();
    devices = done.load->devices();
    double busy = 0;
    for (const double each : done.busy) busy += each;
    for (std::size_t d = 0; !done.costs_known && d < devices; ++d) {
      const double a_byte = done.sizes[d] > 0       ? done.busy[d] / done.sizes[d]
                            : done.sizes_in_all > 0 ? busy / done.sizes_in_all
                                                    : 0;
      resources[d].seconds[d] = a_byte * done.sizes_in_all;
    }
  }
  const auto add_host = [&](const std::string& name, const StageCounter& counter, double at_once) {
    const double seconds = seconds_of(counter.busy) / at_once;
    if (seconds > 0) resources.push_back({name, std::vector<double>(devices, 0.0), seconds, 0});
  };
  add_host("source", counters_[0], 1);
  double parallel = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    if (stages_[s].kind == StageKind::parallel)
      parallel += seconds_of(counters_[s + 1].busy);
    else if (stages_[s].kind != StageKind::kernel)
      add_host(stages_[s].name, counters_[s + 1], 1);
  }
  if (parallel > 0)
    resources.push_back({"the host's cores", std::vector<double>(devices, 0.0),
                         parallel / std::max(1, threads_), 0});
  if (resources.empty()) return;
  const StreamBound bound =
      stream_bound(resources, devices, done.load ? done.load->equal_chunks() : std::size_t{0});
  stats.bound_seconds = bound.seconds;
  stats.limit = resources[bound.limit].name;
}

}  // namespace quadriga
