// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/intake.h: chunks from the source into the run, while there is room for them.
//
// Invariants
//   1. One task at a time asks the source. It ends when there is no room, and the driver submits
//      another when there is.
//   2. mutex_ guards which chunks are in the run and what they take: admission_, ahead_, largest_,
//      pending_, the items' `is_ahead` and `is_let_in`, and the free items. An item belongs to the
//      source's task until its mail is posted, and to nobody once it is free.
//   3. error_ and read_ are the source's task's; the driver reads them when it has ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "pipeline/admission.h"
#include "pipeline/flow_parts.h"

namespace quadriga {

class Intake {
 public:
  Intake(const FlowParts& parts, Pipeline::Source source);

  // The driver's.
  /// Lets in what waits for room, and asks the source if there is more.
  void pump();
  /// The source's task has ended.
  void task_ended();
  /// The source isn't asked again, and what waits for room is dropped.
  void close();
  /// Nothing will come any more.
  bool is_over() const;
  bool has_ended() const noexcept { return ended_.load(); }
  /// What the source threw when it was asked for chunk `read()`; of an intake whose task has ended.
  const std::exception_ptr& error() const noexcept { return error_; }
  std::uint64_t read() const noexcept { return read_; }

  // Any thread.
  /// The source's task ends as soon as the source returns.
  void stop() noexcept { stopping_.store(true); }
  /// The chunk is on a device: another may be read ahead for it.
  void entered(FlowItem& item);
  /// The chunk has ended: its memory and its place are free.
  void give_back(FlowItem& item);
  std::size_t most_bytes_held() const;

 private:
  static void body(const Arguments& arguments);
  bool read_one();
  bool has_room() const;
  void let_in(FlowItem& item);
  FlowItem* free_item();
  bool ask(FlowItem& item);
  void measure(FlowItem& item);

  const FlowParts parts_;
  const Pipeline::Source source_;
  Codelet codelet_;
  std::unique_ptr<TaskGroup> task_;  ///< The driver's; null: the source isn't being asked.

  Nanoseconds full_since_ = -1;  ///< The driver's: since when there is no room.

  std::exception_ptr error_;
  std::uint64_t read_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ended_{false};

  mutable std::mutex mutex_;
  Admission admission_;
  std::size_t ahead_ = 0;        ///< Chunks read that haven't got to a device or an end.
  std::size_t largest_ = 0;      ///< Bytes of a chunk's way, so far.
  FlowItem* pending_ = nullptr;  ///< Was read, and doesn't fit yet.
  std::deque<FlowItem> items_;
  std::vector<FlowItem*> free_;
};

}  // namespace quadriga
