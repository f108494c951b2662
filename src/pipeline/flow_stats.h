// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow_stats.h: what a run counts: stages, copies, latencies, and its bound.
//
// Invariant: counters are atomic; all else is guarded by mutex_. Any thread may call anything but
// begin() and open(), which come first.
#pragma once

#include <quadriga/pipeline.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/flow_item.h"
#include "pipeline/load.h"
#include "pipeline/stage_counter.h"

namespace quadriga {

class FlowStats {
 public:
  FlowStats(const Machine& machine, const std::vector<Stage>& stages, int threads);

  void begin(Nanoseconds now) { begin_ = now; }
  Nanoseconds begun() const { return begin_; }
  void end(Nanoseconds now);
  StageCounter& source() { return counters_.front(); }
  StageCounter& of(std::size_t stage) { return counters_[stage + 1]; }
  /// Of the row of kernels that begins with a stage.
  StageCounter& copy_in(std::size_t first) { return copies_[first].in; }
  StageCounter& copy_out(std::size_t first) { return copies_[first].out; }
  /// Of a chunk in a stage so far.
  Nanoseconds mean(std::size_t stage) const;
  void arrived(Nanoseconds latency);
  void failed(const ChunkFailure& failure);
  void dropped() { ++dropped_; }
  void missed() { ++missed_; }
  void repeated() { ++repeated_; }
  /// Nothing is left of a chunk of the source.
  void released() { ++released_; }
  std::vector<ChunkFailure> failures() const;
  /// The devices of the dispatch.
  void open(std::vector<DeviceId> devices);
  /// A chunk has come to a device of the stream, or has gone from one.
  void entered(std::size_t place);
  void gone(DeviceId device);
  /// Chunks on a device whose kernels can run: one more or less.
  void staged(DeviceId device, int change);
  /// Its head, its kernels and its tail, of a chunk that has left.
  void left(const FlowItem& item, const Segment& segment, Nanoseconds now);
  PipelineStats tell(Nanoseconds now) const;

 private:
  struct Copies {
    StageCounter in;
    StageCounter out;
  };
  /// What has been done on devices, of which the bound is made.
  struct Done {
    std::optional<StreamLoad> load;
    std::vector<double> busy;   ///< Seconds of kernels, by device of the stream.
    std::vector<double> sizes;  ///< Bytes of chunks, by device of the stream.
    double sizes_in_all = 0;
    bool costs_known = true;
  };
  std::size_t place_of(DeviceId device) const;
  void tell_stages(PipelineStats& stats) const;
  void tell_bound(const Done& done, PipelineStats& stats) const;

  const Machine& machine_;
  const std::vector<Stage>& stages_;
  const int threads_;
  const bool are_split_;  ///< Chunks, by a stage: what arrives isn't what the source gave.

  mutable std::mutex mutex_;
  std::deque<StageCounter> counters_;     ///< The source, then the stages.
  std::map<std::size_t, Copies> copies_;  ///< By the first stage of a row of kernels.
  std::vector<DeviceId> devices_;
  std::vector<int> on_device_;  ///< Chunks, by device of the stream.
  int most_on_device_ = 0;
  std::vector<int> staged_;                 ///< Chunks, by device of the stream.
  std::vector<Nanoseconds> last_computed_;  ///< By device of the stream.
  std::vector<std::uint64_t> by_device_;
  Done done_;
  LatencyHistogram latency_;
  std::uint64_t arrived_ = 0;
  std::vector<ChunkFailure> failures_;
  std::uint64_t failed_ = 0;
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> missed_{0};
  std::atomic<std::uint64_t> repeated_{0};
  std::atomic<std::uint64_t> released_{0};
  Nanoseconds begin_ = 0;
  Nanoseconds end_ = -1;
  mutable Nanoseconds told_ = 0;  ///< The latest time of tell(): the end isn't before it.
};

}  // namespace quadriga
