// SPDX-License-Identifier: BSD-3-Clause
// src/engine/crew.h: the cores of a pool that run the fine tasks of divided tasks together.
//
// The core that has a divided task runs its fine tasks until none is ready, and waits for those
// that others have taken. Idle cores take fine tasks of any divided task, until a coarse task waits
// for a core. (Hierarchical DAG: W. Wu, dissertation, University of Tennessee, 2017, section
// 3.2.4.)
//
// Invariants
//   1. `lock_` guards `open_`, and Run::helpers grows under it only. A run is in `open_` until all
//      its tasks have ended; it lives until its helpers have left after that.
//   2. Run::lock guards all else of a run. A fine task is waiting, ready, taken or ended; it is
//      ready once, when its last predecessor has ended.
//   3. `ready_` counts the ready fine tasks of all runs; it grows before `added` is called, so an
//      idle core that looks at it before it sleeps misses none (event_count.h). A core that comes
//      to help calls `added` if there is more than it takes, as searching cores keep others asleep.
//   4. No lock is held while a fine task runs, so a fine task may divide in turn.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/spin_lock.h"
#include "graph/subgraph.h"

namespace quadriga {

/// What one core did for one divided task without a break.
struct FineStretch {
  const Task* task = nullptr;  ///< The divided one; null outside of any.
  std::string_view name = {};  ///< Of its codelet.
  std::size_t tasks = 0;       ///< Fine ones.
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  bool helps = false;  ///< It isn't the core that has the divided task.
};

class Crew {
 public:
  struct Hooks {
    /// Whether other cores have too little to do.
    std::function<bool()> divides;
    /// Another core may take part.
    std::function<void()> added;
    /// Whether a core that helps has coarse tasks to run, which come first.
    std::function<bool()> is_wanted;
    /// Whether a task is cancelled; any thread, also for null.
    std::function<bool(const Task*)> is_cancelled;
    /// Time, and who hears what cores did; by the core itself, before the divided task ends.
    std::function<Nanoseconds()> now;
    std::function<void(const FineStretch&)> worked;
  };

  Crew(const Graph& graph, Hooks hooks) : of_(graph), hooks_(std::move(hooks)) {}

  /// The crew whose core this thread is; null elsewhere.
  static Crew* current() noexcept;
  /// While it lives, this thread is a core of the crew.
  class Member {
   public:
    explicit Member(Crew* crew) noexcept;
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    Crew* before_;
  };

  bool divides() const { return hooks_.divides(); }
  /// Runs the fine tasks, each once, after those it follows; returns when all have ended.
  ///
  /// Errors:  the first exception of a fine task, or that work was cancelled; fine tasks that
  ///          hadn't started by then didn't run.
  void run(const Subgraph& graph);
  /// Runs fine tasks of others while there are some, until the core is wanted. False if there was
  /// none.
  bool help();
  /// Any thread.
  bool has_tasks() const noexcept { return ready_.load(std::memory_order_seq_cst) > 0; }

 private:
  struct Run {
    const Subgraph& graph;
    Task* const task;  ///< The divided one, which its fine tasks run for; null outside of any.
    std::vector<std::uint32_t> waits_for = {};  ///< Predecessors that haven't ended.
    std::vector<std::uint32_t> ready = {};      ///< The last one is taken first.
    std::exception_ptr error = nullptr;
    SpinLock lock = {};
    std::atomic<std::size_t> left{0};  ///< Tasks that haven't ended; written under the lock.
    std::atomic<int> helpers{0};
  };

  /// Runs ready tasks of the run until there is none, or who helps is wanted; returns how many.
  std::size_t work(Run& run, bool helps);
  void tell(const Run& run, std::size_t tasks, Nanoseconds begin, bool helps) const;
  void execute(Run& run, std::size_t task);
  void end(Run& run, std::size_t task);
  Run* join();

  const Graph& of_;
  const Hooks hooks_;
  SpinLock lock_;
  std::vector<Run*> open_;
  std::atomic<std::int64_t> ready_{0};
};

}  // namespace quadriga
