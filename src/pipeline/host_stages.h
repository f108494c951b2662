// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/host_stages.h: bodies on the host: of several chunks at once, or of one at a time.
//
// Invariants
//   1. All members are the driving thread's but for the atomic one and what one task takes: a chain
//      of items, which are the task's until their mail is posted.
//   2. A serial segment has one task at most; parallel ones have no more bodies than threads.
//   3. A chunk's number comes to each segment in order once, also of those that were dropped.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "pipeline/flow_parts.h"
#include "pipeline/sequencer.h"

namespace quadriga {

class HostStages {
 public:
  HostStages(const FlowParts& parts, ChunkRouter& router);

  /// The chunk waits for its segment.
  void add(FlowItem& item);
  /// A chunk was dropped before it came to this segment.
  void wont_come(std::size_t segment, std::uint64_t sequence);
  /// Submits what may run.
  void pump();
  /// A task has passed a chain of chunks on.
  void ended(FlowItem& chain);
  /// Whether each of the engine's cores has a task of these to run.
  bool keeps_cores_busy() const noexcept { return in_flight_ >= cores_; }
  bool all_ended() const noexcept { return tasks_.all_ended(); }

 private:
  struct Lane {
    const Segment* segment = nullptr;
    Codelet codelet = {};
    std::deque<FlowItem*> queue;   ///< That wait for their turn.
    Sequencer in_order;            ///< Before that, of a serial stage in order.
    int running = 0;               ///< Tasks.
    bool is_slow = false;          ///< Seconds are stated, and count.
    std::vector<FlowItem*> batch;  ///< Scratch: what one task takes.
  };
  /// What a task is told: the first of a chain of chunks.
  struct Params {
    HostStages* stages;
    FlowItem* item;
    const Segment* segment;
  };

  bool may_begin_parallel() const;
  void pump_parallel(Lane& lane);
  void take(Lane& lane, std::size_t most);
  void submit(Lane& lane);
  int priority_of(const Lane& lane) const;
  std::size_t quick_chunks(const Lane& lane) const;
  static void body(const Arguments& arguments);
  void submit_slow(FlowItem& item, const Segment& segment);
  std::vector<double> run_slow(FlowItem& item, const Segment& segment);
  bool run_one(FlowItem& item, std::size_t stage);
  Nanoseconds run_bodies(FlowItem& item, const Segment& segment, std::vector<StageTally>& tallies);

  const FlowParts parts_;
  ChunkRouter& router_;
  const int cores_;                           ///< Where there are no accelerators.
  std::vector<std::unique_ptr<Lane>> lanes_;  ///< By segment; null: not of bodies.
  TaskGroup tasks_;                           ///< They refer to the lanes' codelets.
  int running_ = 0;                           ///< Tasks of parallel segments.
  int in_flight_ = 0;                         ///< All tasks.
  std::atomic<int> waiting_{0};               ///< Those of parallel segments that haven't begun.
};

}  // namespace quadriga
