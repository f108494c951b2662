// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stage_counter.h: what a stage counts: chunks, times, its queue, latencies.
//
// All of it is atomic: any thread counts and reads, and none waits. Figures that belong together
// may be read while one of them has changed already.
#pragma once

#include <quadriga/types.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace quadriga {

/// Times in buckets, eight a doubling, so that a million chunks take no memory.
class LatencyHistogram {
 public:
  void add(Nanoseconds time) noexcept {
    buckets_[bucket_of(time)].fetch_add(1, std::memory_order_relaxed);
  }
  /// Seconds that this share of the times doesn't exceed, to 13 %; 0 if there are none.
  double quantile(double share) const noexcept {
    std::uint64_t count = 0;
    for (const auto& bucket : buckets_) count += bucket.load(std::memory_order_relaxed);
    const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets_.size() && count > 0; ++i) {
      seen += buckets_[i].load(std::memory_order_relaxed);
      if (seen >= wanted) return end_of(i) * 1e-9;
    }
    return 0;
  }

 private:
  static constexpr int bits = 3;  // of a time behind its first, which tell the bucket
  static constexpr std::uint64_t per_doubling = std::uint64_t{1} << bits;

  static std::size_t bucket_of(Nanoseconds time) noexcept {
    const auto value = static_cast<std::uint64_t>(std::max<Nanoseconds>(time, 0)) + per_doubling;
    const int doubling = static_cast<int>(std::bit_width(value)) - 1 - bits;
    return static_cast<std::size_t>(static_cast<std::uint64_t>(doubling) * per_doubling +
                                    ((value >> doubling) - per_doubling));
  }
  /// Where a bucket ends, in nanoseconds.
  static double end_of(std::size_t bucket) noexcept {
    const auto doubling = static_cast<int>(bucket / per_doubling);
    const auto place = static_cast<double>(bucket % per_doubling + per_doubling + 1);
    return std::ldexp(place, doubling) - static_cast<double>(per_doubling);
  }

  std::array<std::atomic<std::uint64_t>, (65 - bits) * per_doubling> buckets_{};
};

/// What a task counts of a stage before it tells all: threads share the counters.
struct StageTally {
  std::uint64_t chunks = 0;
  std::int64_t begun = 0;  ///< Chunks that are out of the queue.
  Nanoseconds busy = 0;
  Nanoseconds waited = 0;
};

struct alignas(64) StageCounter {
  std::atomic<std::uint64_t> chunks{0};
  std::atomic<Nanoseconds> busy{0};
  std::atomic<Nanoseconds> waited{0};     ///< By chunks, for their turn.
  std::atomic<Nanoseconds> reserving{0};  ///< By the stage, for room for what it would make.
  std::atomic<std::int64_t> queue{0};
  LatencyHistogram latency;

  void came() noexcept { queue.fetch_add(1, std::memory_order_relaxed); }
  /// A chunk is out of the queue, after some time.
  void began(Nanoseconds time) noexcept {
    queue.fetch_sub(1, std::memory_order_relaxed);
    waited.fetch_add(time, std::memory_order_relaxed);
  }
  /// All of a task's; latencies are added chunk by chunk.
  void add(StageTally& tally) noexcept {
    if (tally.begun > 0) {
      queue.fetch_sub(tally.begun, std::memory_order_relaxed);
      waited.fetch_add(tally.waited, std::memory_order_relaxed);
    }
    chunks.fetch_add(tally.chunks, std::memory_order_relaxed);
    busy.fetch_add(tally.busy, std::memory_order_relaxed);
    tally = {};
  }
  /// What no chunk came of: it found the end, or it is part of the work for several.
  void worked_for_none(Nanoseconds time) noexcept {
    busy.fetch_add(time, std::memory_order_relaxed);
  }
  /// `time` of processing, `in_all` with the wait before.
  void worked(Nanoseconds time, Nanoseconds in_all) noexcept {
    chunks.fetch_add(1, std::memory_order_relaxed);
    busy.fetch_add(time, std::memory_order_relaxed);
    latency.add(in_all);
  }
};

}  // namespace quadriga
