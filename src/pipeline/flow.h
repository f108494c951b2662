// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow.h: one run of a pipeline: chunks from the source through tasks of an engine.
//
// What a stage does to a chunk is a task of the engine: a call of the source, a body on the host, a
// kernel. Copies are the engine's as well; the flow decides when they begin. Everything that ends
// comes back as mail, and one thread at a time, whoever drives, takes it and decides what follows.
//
// Invariants
//   1. `mail_`, `admission_` and what the source left are guarded by mutex_; results and counts by
//      results_mutex_. All else belongs to the thread that drives.
//   2. A chunk is in one place: the source, a stage's queue, the dispatch, a task, the results.
//   3. A chunk's number passes each stage in order once, also of those that failed: they pass
//      without being touched, so that nothing waits for them.
//   4. A chunk's data are removed from the engine before its memory goes to anybody else.
#pragma once

#include <quadriga/pipeline.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine_access.h"
#include "pipeline/admission.h"
#include "pipeline/dispatch.h"
#include "pipeline/flow_item.h"
#include "pipeline/flow_stats.h"
#include "pipeline/links.h"

namespace quadriga {

class Flow {
 public:
  Flow(Engine& engine, std::vector<Stage> stages, Pipeline::Source source,
       const FlowOptions& given);
  /// Stops, and waits for what runs.
  ~Flow();
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

  /// As Pipeline::estimate(); of a flow that hasn't begun.
  PipelineEstimate estimate(std::span<const Chunk> chunks, std::span<const double> seconds);

  void set_order(Order order);
  PipelineStats stats();
  std::vector<ChunkFailure> failures();

 private:
  friend struct FlowItem;
  /// Consecutive stages that a chunk passes in one go: kernels, bodies of parallel stages, or one
  /// serial stage.
  struct Segment {
    std::size_t first = 0;
    std::size_t last = 0;  ///< Behind its last stage.
    StageKind kind = StageKind::parallel;
    Codelet codelet = {};                      ///< Of bodies on the host.
    std::deque<FlowItem*> queue;               ///< That wait for their turn.
    std::map<std::uint64_t, FlowItem*> early;  ///< Of a serial stage in order.
    std::uint64_t next_number = 0;
    int running = 0;
    std::vector<FlowItem*> batch;  ///< Scratch: what one task takes.
  };
  /// What a task on the host is told: the first of a chain of chunks.
  struct HostParams {
    Flow* flow;
    FlowItem* item;
    Segment* segment;
  };

  // flow.cpp: mail, results, the end.
  void cut_segments();
  bool is_over();
  bool drive(double seconds, const std::function<bool()>& until);
  bool wait_for_mail(Nanoseconds real_deadline);
  bool advance();
  void take(const Mail& mail);
  void post(const Mail& mail);
  void go_on(FlowItem& item);
  void begin_segment(FlowItem& item);
  void finish(FlowItem& item);
  void deliver(FlowItem& item);
  void drop(FlowItem& item);
  void give_back(FlowItem& item);
  void fail_item(FlowItem& item, std::exception_ptr error, const std::string& stage);
  bool is_unwanted(const FlowItem& item) const;
  FlowItem* take_result();
  void raise_if_failed();
  void start_thread();
  Nanoseconds clock() const { return engine_.now(); }

  // flow_source.cpp
  void ask_source();
  void read_source();
  bool read_one();
  void complete_fields(Chunk& chunk) const;
  void source_ended();
  bool has_room() const;
  void let_in(FlowItem& item);

  // flow_host.cpp
  void begin_host(FlowItem& item, Segment& segment);
  void pump_host(Segment& segment);
  void submit_host(const Codelet& codelet, std::span<const std::byte> params, TaskGroup* group);
  std::size_t quick_chunks(const Segment& segment) const;
  void submit_batch(Segment& segment);
  void submit_serial(Segment& segment);
  Nanoseconds run_body(FlowItem& item, const Segment& segment);
  static void host_body(const Arguments& arguments);
  void host_ended(FlowItem& item);

  // flow_device.cpp
  void open_devices();
  void add_constants();
  void note_costs(FlowItem& item, const Segment& segment) const;
  void note_bytes(FlowItem& item, const Segment& segment) const;
  void add_load(StreamLoad& load, const Chunk& like, std::span<const double> seconds) const;
  void add_kernel_seconds(FlowItem& item, const Segment& segment, std::span<const double> seconds,
                          std::vector<double>& sums) const;
  StreamChunk needs_of(const FlowItem& item, const Segment& segment) const;
  void begin_device(FlowItem& item, const Segment& segment);
  void pump_devices();
  void enter_device(FlowItem& item, DeviceId device);
  void submit_kernels(FlowItem& item, const Segment& segment,
                      const std::vector<std::vector<Operand>>& operands);
  Data operand_of(FlowItem& item, const FieldUse& use);
  void kernels_ended(FlowItem& item);
  std::exception_ptr failure_of(const TaskGroup& group) const;
  std::string failed_stage_of(const Segment& segment, const std::exception_ptr& error) const;
  void leave_device(FlowItem& item);
  void abandon(FlowItem& item);
  void left_device(FlowItem& item);
  void remove_data();

  Engine& engine_;
  std::vector<Stage> stages_;
  Pipeline::Source source_;
  const FlowOptions options_;
  std::vector<std::unique_ptr<Segment>> segments_;
  Codelet source_codelet_;
  TaskGroup tasks_;  ///< All tasks but kernels: they refer to codelets of the flow.

  // Guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Mail> mail_;
  Admission admission_;
  std::size_t ahead_ = 0;        ///< Chunks read that haven't got to a device or an end.
  std::size_t largest_ = 0;      ///< Bytes of a chunk's way, so far.
  FlowItem* pending_ = nullptr;  ///< Was read, and doesn't fit yet.
  std::deque<FlowItem> items_;
  std::vector<FlowItem*> free_items_;
  std::exception_ptr source_error_;

  std::atomic<bool> has_mail_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> source_ended_{false};
  std::atomic<std::uint64_t> read_{0};  ///< Chunks that the source gave.
  bool source_runs_ = false;
  bool told_end_ = false;
  std::unique_ptr<TaskGroup> source_group_;

  // The driving thread's.
  std::vector<Mail> taken_;
  std::optional<Dispatch> dispatch_;
  std::vector<DeviceId> devices_;  ///< By the dispatch's numbering.
  std::vector<FlowItem*> by_slot_;
  std::vector<Data> leaving_;
  std::map<std::string, std::pair<Data, View>> constants_;
  std::size_t alive_ = 0;  ///< Chunks let in and not finished.
  int host_running_ = 0;
  bool moved_ =
      false;  ///< A chunk has come to a stage, or was dropped, since stages were looked at.
  std::optional<ChunkFailure> failure_;  ///< That ends the run: of the smallest number.

  std::mutex results_mutex_;
  std::condition_variable result_there_;
  std::map<std::uint64_t, FlowItem*> results_;  ///< In order, by number; null: there is none.
  std::deque<FlowItem*> completed_;             ///< As they completed.
  std::uint64_t next_result_ = 0;
  bool in_order_ = true;
  bool keeps_results_ = false;
  bool over_ = false;
  bool raised_ = false;
  std::exception_ptr broken_;  ///< A failure of the flow itself.
  std::atomic<int> order_asked_{-1};
  FlowStats stats_;

  std::thread thread_;
};

}  // namespace quadriga
