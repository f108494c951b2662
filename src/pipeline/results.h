// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/results.h: chunks that have passed all stages, and those who wait for them.
//
// Invariants
//   1. All members are guarded by mutex_; waiters are woken whenever one of them changes.
//   2. In order, a chunk is given when all of smaller numbers were given or won't come, and none of
//      them has ended the run by its failure.
//   3. The end is said once, by the driver, after the last chunk was put.
#pragma once

#include <quadriga/pipeline.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>

#include "pipeline/flow_item.h"
#include "pipeline/mailbox.h"
#include "pipeline/sequencer.h"

namespace quadriga {

class Results {
 public:
  /// From here on results are kept for take(); true for the first call.
  bool keep(bool in_order);

  // The driver's.
  /// False if nobody keeps results: the chunk is still the caller's.
  bool put(FlowItem& item);
  void wont_come(std::uint64_t sequence);
  /// Chunks behind this one are no results any more.
  void fail(const ChunkFailure& failure);
  /// `broken`: a failure of the run itself.
  void end(std::exception_ptr broken = nullptr);

  // A consumer's.
  /// The next result, if it is there.
  FlowItem* take();
  /// Waits for it; null at the end, or with is_late at the deadline.
  FlowItem* take(const Deadline& deadline, bool& is_late);
  bool is_over() const;
  /// False at the deadline.
  bool wait_over(const Deadline& deadline);
  /// What ended the run, once; nothing afterwards. Errors: the failure of the run itself.
  std::optional<ChunkFailure> take_failure();

 private:
  FlowItem* next();
  template <class Condition>
  bool wait(std::unique_lock<std::mutex>& lock, const Deadline& deadline, Condition condition);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Sequencer in_order_;
  std::deque<FlowItem*> completed_;  ///< As they completed.
  bool is_kept_ = false;
  bool is_in_order_ = true;
  bool over_ = false;
  bool raised_ = false;
  std::optional<ChunkFailure> failure_;  ///< Of the smallest number.
  std::exception_ptr broken_;
};

}  // namespace quadriga
