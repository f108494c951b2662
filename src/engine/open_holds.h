// SPDX-License-Identifier: BSD-3-Clause
// src/engine/open_holds.h: the host's accesses to an engine's data that haven't ended, by thread.
//
// Invariants
//   1. mutex_ guards the list. It is taken last: nothing else is taken, and no user code runs,
//      while it is held.
//   2. An access is in the list from when it may be ended until somebody ends it.
//   3. While it is in the list, its task and its data's registrations stay.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/hold.h"
#include "graph/graph.h"

namespace quadriga {

/// Any thread may call anything.
class OpenHolds {
 public:
  explicit OpenHolds(const Graph& graph) : graph_(graph) {}

  void add(std::shared_ptr<Hold> hold);
  /// False if it isn't there.
  bool take(const Hold& hold);
  /// Adds registrations to an access for as long as it lasts; false if somebody ends it.
  bool keep(Hold& hold, std::vector<Datum*>& registered);
  std::vector<std::shared_ptr<Hold>> all() const;
  /// What a thread has in its accesses, but for those that end at once: another thread's, which
  /// acts for this one.
  std::vector<HeldDatum> of(std::thread::id thread) const;
  /// Throws unavailable if tasks, or this one, wait for an access of this thread's, which would
  /// wait for them.
  void refuse_own(const TaskRef* task = nullptr) const;

 private:
  bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }

  const Graph& graph_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Hold>> holds_;
  std::atomic<std::size_t> count_{0};  ///< Of the list; read without the lock.
};

}  // namespace quadriga
