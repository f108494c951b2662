// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow_stats.cpp: counting, and what the counts say of the bound.
#include "pipeline/flow_stats.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace quadriga {
namespace {

constexpr double nano = 1e-9;
/// A stage's mean before its first chunk: one chunk a task, until it is known.
constexpr Nanoseconds quick_until_known = 1'000'000;
/// Failures that are kept to be told; all are counted.
constexpr std::size_t most_failures = 1000;

std::string kind_of(StageKind kind) {
  constexpr const char* names[] = {"kernel", "parallel", "serial", "serial_in_order"};
  return names[static_cast<int>(kind)];
}

}  // namespace

void LatencyHistogram::add(Nanoseconds time) {
  const double doublings = std::log2(static_cast<double>(std::max<Nanoseconds>(time, 1)));
  const auto last = static_cast<double>(buckets_.size() - 1);
  ++buckets_[static_cast<std::size_t>(std::min(last, doublings * per_doubling))];
  ++count_;
}

double LatencyHistogram::quantile(double share) const {
  if (count_ == 0) return 0;
  const double wanted = share * static_cast<double>(count_);
  double seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += static_cast<double>(buckets_[i]);
    if (seen >= wanted && buckets_[i] > 0)
      return std::exp2(static_cast<double>(i + 1) / per_doubling) * nano;
  }
  return 0;
}

FlowStats::FlowStats(const Machine& machine, const std::vector<Stage>& stages, int threads)
    : machine_(machine), stages_(stages), threads_(threads) {
  for (std::size_t i = 0; i <= stages.size(); ++i) counters_.emplace_back();
}

void FlowStats::open(std::vector<DeviceId> devices) {
  devices_ = std::move(devices);
  last_computed_.assign(devices_.size(), 0);
  busy_.assign(devices_.size(), 0.0);
  sizes_.assign(devices_.size(), 0.0);
  by_device_.assign(devices_.size(), 0);
  load_.emplace(machine_, devices_);
}

void FlowStats::worked(std::size_t stage, Nanoseconds time, bool passed) {
  Counter& counter = counters_[stage];
  counter.busy.fetch_add(time, std::memory_order_relaxed);
  if (passed) counter.chunks.fetch_add(1, std::memory_order_relaxed);
}

void FlowStats::waited(std::size_t stage, Nanoseconds time) {
  counters_[stage].waited.fetch_add(time, std::memory_order_relaxed);
}

Nanoseconds FlowStats::mean(std::size_t stage) const {
  const Counter& counter = counters_[stage];
  const auto chunks = static_cast<Nanoseconds>(counter.chunks.load(std::memory_order_relaxed));
  return chunks > 0 ? counter.busy.load(std::memory_order_relaxed) / chunks : quick_until_known;
}

void FlowStats::end(Nanoseconds now) {
  const std::lock_guard lock(mutex_);
  if (end_ < 0) end_ = now;
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

void FlowStats::left(const FlowItem& item, std::size_t first, std::size_t last, Nanoseconds now) {
  const auto add = [](Counter& counter, Nanoseconds time, Nanoseconds waiting) {
    counter.chunks.fetch_add(1, std::memory_order_relaxed);
    counter.busy.fetch_add(time, std::memory_order_relaxed);
    counter.waited.fetch_add(waiting, std::memory_order_relaxed);
  };
  const DeviceStay& stay = item.stay;
  const std::lock_guard lock(mutex_);
  const auto d =
      static_cast<std::size_t>(std::ranges::find(devices_, stay.device) - devices_.begin());
  const Nanoseconds began = std::max(stay.staged, last_computed_[d]);
  const Nanoseconds computing = std::max<Nanoseconds>(0, stay.computed - began);
  last_computed_[d] = std::max(last_computed_[d], stay.computed);
  if (stay.has_head) add(copy_in_, stay.staged - stay.entered, stay.entered - item.ready);
  if (stay.has_tail) add(copy_out_, now - stay.leaving, stay.leaving - stay.computed);
  // A row of kernels is one to the stream: its time is told with its first.
  add(counters_[first + 1], computing, began - stay.staged);
  for (std::size_t s = first + 1; s < last; ++s) add(counters_[s + 1], 0, 0);
  busy_[d] += static_cast<double>(computing) * nano;
  sizes_[d] += stay.load.bytes_in + stay.load.bytes_out;
  sizes_in_all_ += stay.load.bytes_in + stay.load.bytes_out;
  ++by_device_[d];
  costs_known_ &= stay.load.costs_known;
  load_->add(stay.load);
}

StageStats FlowStats::stage(std::string name, std::string kind, const Counter& counter,
                            double at_once, double seconds) const {
  StageStats told{std::move(name), std::move(kind)};
  told.chunks = counter.chunks.load();
  told.busy_seconds = static_cast<double>(counter.busy.load()) * nano;
  told.waiting_seconds = static_cast<double>(counter.waited.load()) * nano;
  if (seconds > 0) told.occupancy = told.busy_seconds / (seconds * std::max(1.0, at_once));
  return told;
}

PipelineStats FlowStats::tell(Nanoseconds now) const {
  const std::lock_guard lock(mutex_);
  PipelineStats stats;
  stats.seconds = static_cast<double>((end_ >= 0 ? end_ : now) - begin_) * nano;
  const auto devices = static_cast<double>(devices_.size());
  stats.stages.push_back(stage("source", "source", counters_[0], 1, stats.seconds));
  bool in_row = false;
  const auto end_row = [&] {
    if (std::exchange(in_row, false))
      stats.stages.push_back(stage("copy out", "copy out", copy_out_, devices, stats.seconds));
  };
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const StageKind kind = stages_[s].kind;
    if (kind != StageKind::kernel) end_row();
    if (kind == StageKind::kernel && !std::exchange(in_row, true))
      stats.stages.push_back(stage("copy in", "copy in", copy_in_, devices, stats.seconds));
    const double at_once = kind == StageKind::kernel     ? devices
                           : kind == StageKind::parallel ? threads_
                                                         : 1;
    stats.stages.push_back(
        stage(stages_[s].name, kind_of(kind), counters_[s + 1], at_once, stats.seconds));
  }
  end_row();
  stats.chunks = arrived_;
  stats.failed = failed_;
  stats.latency_median = latency_.quantile(0.5);
  stats.latency_99 = latency_.quantile(0.99);
  stats.by_device = by_device_;
  tell_bound(stats);
  return stats;
}

/// Kernels whose cost nobody knows are charged what they took, by bytes.
void FlowStats::tell_bound(PipelineStats& stats) const {
  std::vector<StreamResource> resources;
  std::size_t devices = 1;
  if (load_ && load_->chunks() > 0) {
    resources = load_->resources();
    devices = load_->devices();
    double busy = 0;
    double sizes = 0;
    for (std::size_t d = 0; d < devices; ++d) busy += busy_[d], sizes += sizes_[d];
    for (std::size_t d = 0; !costs_known_ && d < devices; ++d) {
      const double a_byte = sizes_[d] > 0 ? busy_[d] / sizes_[d] : sizes > 0 ? busy / sizes : 0;
      resources[d].seconds[d] = a_byte * sizes_in_all_;
    }
  }
  const auto add_host = [&](const std::string& name, const Counter& counter, double at_once) {
    const double seconds = static_cast<double>(counter.busy.load()) * nano / at_once;
    if (seconds > 0) resources.push_back({name, std::vector<double>(devices, 0.0), seconds, 0});
  };
  add_host("source", counters_[0], 1);
  double parallel = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    if (stages_[s].kind == StageKind::parallel)
      parallel += static_cast<double>(counters_[s + 1].busy.load()) * nano;
    else if (stages_[s].kind != StageKind::kernel)
      add_host(stages_[s].name, counters_[s + 1], 1);
  }
  if (parallel > 0)
    resources.push_back({"the host's cores", std::vector<double>(devices, 0.0),
                         parallel / std::max(1, threads_), 0});
  if (resources.empty()) return;
  const StreamBound bound = stream_bound(resources, devices);
  stats.bound_seconds = bound.seconds;
  stats.limit = resources[bound.limit].name;
}

}  // namespace quadriga
