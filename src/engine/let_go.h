// SPDX-License-Identifier: BSD-3-Clause
// src/engine/let_go.h: what waits for tasks at its end, and whose last handle may be a body's.
//
// Invariants
//   1. What a body made itself ends at once: only the body's children use it. All else is left to
//      the engine, for the tasks that use it may wait for the body.
//   2. The engine ends what was left after a wait outside of bodies, if no task is left, and at its
//      own end, once all tasks have ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/engine_access.h"

namespace quadriga {

/// What bodies left. Any thread.
class Left {
 public:
  void add(std::function<void()> end) {
    const std::lock_guard lock(mutex_);
    ends_.push_back(std::move(end));
    any_.store(true, std::memory_order_release);
  }
  bool any() const noexcept { return any_.load(std::memory_order_acquire); }
  /// Ends all of it, outside of bodies, once no task is left that may use any of it.
  void end() {
    while (any()) {
      std::vector<std::function<void()>> ends;
      {
        const std::lock_guard lock(mutex_);
        ends.swap(ends_);
        any_.store(false, std::memory_order_relaxed);
      }
      for (const std::function<void()>& each : ends) each();
    }
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> any_{false};
  std::vector<std::function<void()>> ends_;  ///< Guarded by mutex_.
};

/// Ends what an engine's tasks use, at once or later (invariant 1). Made where that is made.
class LetGo {
 public:
  explicit LetGo(Engine& engine) : engine_(&engine), made_in_(EngineAccess::running(engine)) {}

  /// `end` waits for tasks and throws nothing.
  template <class End>
  void call(End end) const noexcept {
    const std::uint64_t running = EngineAccess::running(*engine_);
    if (running == 0 || running == made_in_) return end();
    try {
      EngineAccess::leave(*engine_, std::move(end));
    } catch (const std::exception&) {
      // No memory even for that: it stays until the process ends.
    }
  }
  /// As a deleter.
  template <class T>
  void operator()(T* last) const noexcept {
    call([last] { delete last; });
  }

 private:
  Engine* engine_;
  std::uint64_t made_in_;  ///< The task whose body made it; 0: none.
};

}  // namespace quadriga
