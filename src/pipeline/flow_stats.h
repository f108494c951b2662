// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow_stats.h: what a run counts: stages, copies, latencies, and its bound.
//
// Invariant: counters are atomic, so that worked() and waited() cost next to nothing; all else is
// guarded by mutex_. Any thread may call anything but begin() and open(), which come first.
#pragma once

#include <quadriga/pipeline.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/flow_item.h"
#include "pipeline/load.h"

namespace quadriga {

/// Times in buckets, eight a doubling, so that a million chunks take no memory.
class LatencyHistogram {
 public:
  void add(Nanoseconds time);
  /// Seconds that this share of the times doesn't exceed, to 9 %; 0 if there are none.
  double quantile(double share) const;

 private:
  static constexpr int per_doubling = 8;
  std::array<std::uint64_t, 512> buckets_{};
  std::uint64_t count_ = 0;
};

class FlowStats {
 public:
  FlowStats(const Machine& machine, const std::vector<Stage>& stages, int threads);

  void begin(Nanoseconds now) { begin_ = now; }
  void end(Nanoseconds now);
  /// Stage 0 is the source.
  void worked(std::size_t stage, Nanoseconds time, bool passed);
  void waited(std::size_t stage, Nanoseconds time);
  /// Of a chunk in a stage so far.
  Nanoseconds mean(std::size_t stage) const;
  void arrived(Nanoseconds latency);
  void failed(const ChunkFailure& failure);
  std::vector<ChunkFailure> failures() const;
  /// The devices of the dispatch.
  void open(std::vector<DeviceId> devices);
  /// Its head, its kernels and its tail, of a chunk that has left; `load`: what it asked for.
  void left(const FlowItem& item, std::size_t first, std::size_t last, Nanoseconds now);
  PipelineStats tell(Nanoseconds now) const;

 private:
  struct alignas(64) Counter {
    std::atomic<std::uint64_t> chunks{0};
    std::atomic<Nanoseconds> busy{0};
    std::atomic<Nanoseconds> waited{0};
  };
  StageStats stage(std::string name, std::string kind, const Counter& counter, double at_once,
                   double seconds) const;
  void tell_bound(PipelineStats& stats) const;

  const Machine& machine_;
  const std::vector<Stage>& stages_;
  const int threads_;

  mutable std::mutex mutex_;
  std::deque<Counter> counters_;  ///< The source, then the stages.
  Counter copy_in_;
  Counter copy_out_;
  std::vector<DeviceId> devices_;
  std::vector<Nanoseconds> last_computed_;  ///< By device of the stream.
  std::vector<double> busy_;                ///< Seconds of kernels, by device of the stream.
  std::vector<double> sizes_;               ///< Bytes of chunks, by device of the stream.
  std::vector<std::uint64_t> by_device_;
  std::optional<StreamLoad> load_;
  bool costs_known_ = true;
  double sizes_in_all_ = 0;
  LatencyHistogram latency_;
  std::uint64_t arrived_ = 0;
  std::vector<ChunkFailure> failures_;
  std::uint64_t failed_ = 0;
  Nanoseconds begin_ = 0;
  Nanoseconds end_ = -1;
};

}  // namespace quadriga
