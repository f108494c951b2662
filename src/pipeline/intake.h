// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/intake.h: chunks from a source into the run, while there is room for them: from the
// pipeline's source, or from one of the chunks that a flat_map makes of one.
//
// Invariants
//   1. One task at a time asks the source. It ends when there is no room, and the driver submits
//      another when there is, or where no device chooses among chunks, when half of them have gone.
//   2. mutex_ guards which chunks are in the run and what they take: admission_, ahead_, largest_,
//      pending_, the items' `is_ahead` and `is_let_in`, the free items, and reading_, which is
//      there from open() on or never. An item belongs to the source's task until its mail is
//      posted, and to nobody once it is free.
//   3. source_, error_, failed_, slow_ and sequence_ belong to the task while there is one, else to
//      the driver. By the virtual clock a task that takes the stated time follows each chunk, in
//      task_.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "pipeline/admission.h"
#include "pipeline/flow_parts.h"
#include "pipeline/read_order.h"

namespace quadriga {

/// What an intake makes.
struct IntakePlace {
  std::size_t most_bytes = 0;  ///< Of chunks on their way.
  std::size_t segment = 0;     ///< Where its chunks begin.
  std::size_t generation = 0;
  std::string name = {};           ///< Of the stage.
  Pipeline::Seconds seconds = {};  ///< Of a chunk, by the virtual clock.
  bool drops = false;              ///< What there is no room for is dropped; else the source waits.
  std::string purpose = "it (host_memory)";  ///< Of most_bytes, and the option that states them.
};

class Intake {
 public:
  Intake(const FlowParts& parts, const IntakePlace& place, StageCounter& counter);

  // The driver's.
  /// What is asked from now on; of no other source that is still asked.
  void open(Pipeline::Source source);
  /// The same of one that gives any chunk by its number, and is asked in this order.
  void open(Pipeline::Source source, ReadOrder order);
  /// The same of what `split` makes of a chunk, which is kept until all of that has ended.
  void open(const Pipeline::Split& split, FlowItem& parent);
  /// Lets in what waits for room, and asks the source if there is more.
  void pump();
  /// The task has ended: whether the source isn't asked any more.
  bool task_ended();
  /// Why a task couldn't begin, as no thread could be started: the source isn't asked again. Null
  /// the next time.
  std::exception_ptr take_refusal() noexcept { return std::exchange(refusal_, nullptr); }
  /// Whether a chunk that it gave waits for room. When the last one of the pipeline's source gets
  /// it, the end is told again.
  bool holds_chunk() const;
  /// The source isn't asked again, and what waits for room is dropped.
  void close();
  /// The same from this number on: chunks before it are still read.
  void end_at(std::uint64_t number);
  /// Of a source that gives any chunk: in which order from now on.
  void set_order(Order order);
  /// Nothing will come any more.
  bool is_over() const;
  /// What the source threw when it was asked for the chunk failed_id(); of one that has ended.
  const std::exception_ptr& error() const noexcept { return error_; }
  ChunkId failed_id() const { return reading_ ? ChunkId{failed_} : next_id(); }
  /// The chunk that it gives next, in the order of the source.
  ChunkId next_id() const;
  /// The chunk that is split; it lives until all is made of it.
  FlowItem* parent() const noexcept { return parent_; }
  /// The place in the order of a chunk that passes this by.
  std::uint64_t take_sequence() noexcept { return sequence_++; }

  // Any thread.
  /// The source's task ends as soon as the source returns.
  void stop() noexcept { stopping_.store(true); }
  /// The chunk is on a device: another may be read ahead for it.
  void entered(FlowItem& item);
  std::size_t most_bytes_held() const;
  /// What its kernels return is known: its whole way takes so many bytes.
  void resized(FlowItem& item, std::size_t bytes);
  /// The chunk has ended. Its memory and its place are free once what was made of it has as well.
  static void release(FlowItem& item);

 private:
  class Working;
  static void body(const Arguments& arguments);
  bool read_one();
  bool is_slow() const { return place_.seconds && parts_.time.is_stated(); }
  void take_time(FlowItem& item);
  bool admit(FlowItem& item);
  bool has_room() const;
  bool may_ask() const;
  bool may_begin() const;
  void let_in(FlowItem& item);
  void miss(FlowItem& item);
  FlowItem* free_item();
  bool ask(FlowItem& item);
  std::optional<ChunkId> take_id();
  bool found_none(std::uint64_t number);
  bool has_read_all() const;
  void measure(FlowItem& item);
  void give_back(FlowItem& item);

  const FlowParts parts_;
  const IntakePlace place_;
  StageCounter& counter_;
  Codelet codelet_;
  std::unique_ptr<TaskGroup> task_;  ///< The driver's; null: the source isn't being asked.
  std::exception_ptr refusal_;       ///< The driver's.
  FlowItem* slow_ = nullptr;         ///< Was read, and takes what was stated yet.
  Nanoseconds full_since_ = -1;      ///< The driver's: since when there is no room.
  FlowItem* parent_ = nullptr;       ///< Changed by the driver while there is no task.
  Pipeline::Split split_;            ///< The same: what makes the source.

  Pipeline::Source source_;
  std::exception_ptr error_;
  std::uint64_t failed_ = 0;            ///< The chunk that couldn't be read, of an indexed source.
  std::uint64_t sequence_ = 0;          ///< Of the next chunk.
  std::atomic<std::uint64_t> made_{0};  ///< Chunks of this source.
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ended_{true};

  mutable std::mutex mutex_;
  Admission admission_;
  std::size_t ahead_ = 0;             ///< Chunks read that haven't got to a device or an end.
  std::size_t largest_ = 0;           ///< Bytes of a chunk's way, so far.
  FlowItem* pending_ = nullptr;       ///< Was read, and doesn't fit yet.
  std::optional<ReadOrder> reading_;  ///< Of a source that gives any chunk.
  std::deque<FlowItem> items_;
  std::vector<FlowItem*> free_;
};

}  // namespace quadriga
