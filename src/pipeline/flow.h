// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow.h: one run of a pipeline: chunks from the source through tasks of an engine.
//
// What a stage does to a chunk is a task of the engine: a call of the source, a body on the host, a
// kernel. Copies are the engine's as well; the dispatch decides when they begin. Everything that
// ends comes back as mail. One thread at a time, whoever drives, takes it, tells the part that it
// is about, and decides what follows. Where there are but cores, the one that has run a body drives
// next, so that a chunk's way takes no switch between threads; the thread that waits for the end
// drives when the rest has come to an end:
//
//   Intake --> HostStages / DeviceStages / FlatMap, by segment --> Results
//
// Invariants
//   1. A chunk is in one place: the intake, a stage's queue, the dispatch, a task, the results.
//   2. A chunk's place in the order of its generation comes to each stage that keeps the order,
//      also of those that failed: nothing waits for them.
//   3. Members are the driving thread's (mailbox.h), but for the atomics and the parts that say
//      otherwise.
#pragma once

#include <quadriga/pipeline.h>

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "pipeline/device_stages.h"
#include "pipeline/flat_map.h"
#include "pipeline/flow_parts.h"
#include "pipeline/host_buffers.h"
#include "pipeline/host_stages.h"
#include "pipeline/intake.h"
#include "pipeline/mailbox.h"
#include "pipeline/nested.h"
#include "pipeline/results.h"

namespace quadriga {

class Flow final : ChunkRouter {
 public:
  // Errors of what begins or waits for a run: invalid_argument in a body whose thread it may need.

  Flow(Engine& engine, std::vector<Stage> stages, Pipeline::Source source,
       const FlowOptions& given);
  /// Stops, and waits for what runs.
  ~Flow() override;
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  /// Drives until the run has ended, or seconds have passed (negative: none). True if it has ended.
  /// Errors: the failure that ended the run, once.
  bool run(double seconds);
  /// The same; under the real clock a thread of the flow drives, so that none of the callbacks runs
  /// on the caller's.
  bool run_behind(double seconds);
  /// The next result. Nothing at the end of the run; or if `seconds` pass before: is_late.
  std::optional<Chunk> next(bool in_order, double seconds, bool& is_late);
  /// Nothing new begins; what runs ends.
  void stop();
  /// After stop(): waits until what began has ended, but for a source that can't be interrupted.
  /// False after `seconds`. Under the virtual clock, or without results, the caller drives.
  bool drain(double seconds);

  void set_order(Order order);
  PipelineStats stats() const;
  std::vector<ChunkFailure> failures() const { return stats_.failures(); }
  /// Results of all chunks, by name, once the run has ended well.
  std::map<std::string, View> reduced() const;

 private:
  // ChunkRouter
  bool is_unwanted(const ChunkId& chunk) const override;
  void passed(FlowItem& item) override;
  void dropped(FlowItem& item) override;
  void split(FlowItem& item, const std::optional<ChunkFailure>& failure) override;
  void entered(FlowItem& item) override { item.home.entered(item); }
  void tell(const Mail& mail) override;

  /// What the stages share.
  FlowParts parts() { return {engine_, plan_, options_, mail_, stats_, time_, buffers_.get()}; }
  void open_source(Pipeline::Source source);
  void keep_source_order();
  bool is_over() const;
  /// Whether the thread that has run a body drives.
  bool bodies_drive() const;
  bool drive(double seconds, const std::function<bool()>& until);
  bool drive_apart(double seconds, const std::function<bool()>& until);
  void drive_here();
  bool has_done(const std::function<bool()>& until);
  void advance();
  void take(const Mail& mail);
  void begin_segment(FlowItem& item);
  void finish(FlowItem& item);
  void asked(Intake& intake);
  void count_failure(const ChunkFailure& failure);
  void note_failure(const ChunkFailure& failure);
  void end_run(std::exception_ptr broken = nullptr);
  FlowItem* next_by_driving(double seconds, bool& is_late);
  void combine(std::exception_ptr& broken);
  void raise_if_failed();
  void start_thread();

  Engine& engine_;
  const Nesting nesting_;
  const StagePlan plan_;
  const FlowOptions options_;
  Mailbox mail_;
  FlowStats stats_;
  HostTime time_;
  const std::shared_ptr<HostBuffers> buffers_;  ///< Null where nothing is copied to devices.
  const std::vector<std::size_t> shares_;  ///< Of the run's memory: the source's, each flat_map's.
  Intake intake_;
  HostStages hosts_;
  std::optional<DeviceStages> devices_;       ///< Of pipelines with kernels.
  std::map<std::size_t, FlatMap> flat_maps_;  ///< By segment.
  Results results_;

  std::vector<Mail> taken_;     ///< Scratch.
  bool reads_by_size_ = false;  ///< Chunks of known sizes; else in the source's order.
  std::size_t alive_ = 0;       ///< Chunks that have arrived and not ended.
  bool moved_ = false;  ///< A chunk came to a stage or was dropped since stages were pumped.
  std::optional<ChunkFailure> failure_;  ///< That ends the run: of the smallest number.
  std::exception_ptr broken_;            ///< What a worker that drove met.
  std::exception_ptr refused_;           ///< What kept the source from being asked.
  bool is_ending_ = false;               ///< Nobody is told of failures any more.

  std::atomic<bool> stopping_{false};
  std::atomic<int> order_asked_{-1};
  std::thread thread_;
};

}  // namespace quadriga
