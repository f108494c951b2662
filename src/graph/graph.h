// SPDX-License-Identifier: BSD-3-Clause
// src/graph/graph.h: the slots of tasks in the window, and the dependencies that follow from access
// order.
//
// Invariants
//   1. The submission lock guards every History and the order of ids; no user code runs under it.
//   2. A slot taken by allocate() belongs to the submitter until link() made it a task.
//   3. allocation_ guards the free slots. Threads give and take them many at a time, by address:
//      what a slot holds is in another core's cache and is fetched ahead of its use.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/spin_lock.h"
#include "graph/task.h"

namespace quadriga {

/// The accesses of the children of one task; they are ordered among themselves only.
struct Domain {
  std::unordered_map<Datum*, History> histories;
  std::vector<Datum*> reduced;  ///< With a group of partial results to combine, in order.
};

class Reductions;

/// Slots on their way from ended tasks to submitters; one a thread.
struct FreeSlots {
  static constexpr std::size_t most = 32;
  Task* slots[most];
  std::size_t count = 0;
};

class Graph {
 public:
  explicit Graph(std::size_t window);

  /// A free slot, or null when the window is full. `beyond`: make one more all the same.
  Task* allocate(bool beyond = false);
  /// Whether the next call of allocate() by this thread finds a slot.
  bool has_slot();
  /// Gives back the slot of an ended task, or of one that was never linked.
  void release(Task* task, FreeSlots& slots);
  /// Makes slots released by this thread available to submitters.
  void flush(FreeSlots& slots);

  SpinLock& submission() noexcept { return submission_; }

  /// Under the submission lock: gives the task its id and its edges. Returns what the caller gives
  /// to unguard() afterwards.
  std::uint64_t link(Task& task);
  /// The same for an access of the host's, which is no task: nothing that its operands' histories
  /// name may be pending. Who submits later waits until it has ended.
  void link_hold(Task& task);
  static bool is_hold(std::uint64_t id) noexcept { return id & hold_bit; }
  /// Whether an access of the host's hasn't ended; false only after its end is seen by ended().
  bool has_holds() const noexcept { return open_holds_.load(std::memory_order_acquire) > 0; }
  /// One has ended, by end_alone() or ended().
  void hold_ended() noexcept { open_holds_.fetch_sub(1, std::memory_order_release); }
  /// Lets the task become ready. Returns its pending predecessors (see Task::pending).
  static std::uint64_t unguard(Task& task, std::uint64_t predecessors) noexcept {
    if (predecessors == 0) {  // nobody else changes what it counts
      task.pending.store(0, std::memory_order_release);
      return 0;
    }
    const std::uint64_t change = guard - predecessors;
    return task.pending.fetch_sub(change, std::memory_order_acq_rel) - change;
  }

  /// The task is issued on a device: its successors lose a predecessor that isn't issued. Calls
  /// ready(Task&) for each that thereby has none; returns the edges, for ended().
  template <class Ready>
  static Edge* issued(Task& task, Ready&& ready);
  /// The task is done: its successors lose a predecessor. `earlier` is what issued() returned.
  /// Calls ready(Task&, pending) for each successor whose count changed to a value with no unissued
  /// predecessor (host executors look for pending == 0).
  template <class Ready>
  void ended(Task& task, Edge* earlier, Ready&& ready);

  /// To the successor that was submitted last; null if there is none. For who issues the task, as
  /// long as it hasn't.
  static const Edge* last_edge(const Task& task) noexcept {
    const std::uintptr_t head = task.successors.load(std::memory_order_acquire);
    return reinterpret_cast<const Edge*>(head & ~(Task::closed | Task::issued));
  }

  std::uint64_t submitted() const noexcept { return next_id_.load(std::memory_order_acquire) - 1; }
  std::size_t window() const noexcept { return window_; }
  /// Keeps every dependency as (predecessor, successor) from here on, for traces.
  void keep_edges() { keep_edges_ = true; }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> edges();
  /// The body of a task that submits tasks has ended: what its children reduced is combined.
  void body_ended(Task& task);
  /// Who combines; set before the first task.
  void set_reductions(Reductions* reductions) noexcept { reductions_ = reductions; }
  /// Tasks that conflict with a new access to the datum, for wait(data). Takes the lock.
  void collect(Datum& datum, std::vector<TaskRef>& out);
  /// The same under the submission lock, for an access of this mode: read or another.
  void collect(Datum& datum, Access access, std::vector<TaskRef>& out);
  /// Ends a task that nobody follows; false if somebody does.
  static bool end_alone(Task& task) noexcept {
    std::uintptr_t none = 0;
    return task.successors.compare_exchange_strong(none, Task::closed, std::memory_order_acq_rel);
  }
  /// True once the task ended: what it wrote is then seen. Takes no lock, whoever has its slot now.
  bool ended(const TaskRef& ref) const noexcept;

 private:
  struct Counts {
    std::uint64_t pending = 0;
    int edges = 0;
    bool strict = false;  ///< The edges to come.
  };
  /// False if the other has ended.
  bool follow(TaskRef pred, Task& task, OperandSlot& slot, Counts& counts);
  void follow_writer(const History& history, Task& task, OperandSlot& slot, Counts& counts);
  void follow_all(History& history, bool before, Task& task, OperandSlot& slot, Counts& counts);
  void access(History& history, Task& task, OperandSlot& slot, Counts& counts);
  static History& history_of(Datum& datum, Task* parent);
  static History& history_inside(Datum& datum, Task& parent);
  void access_aliases(Task& task, OperandSlot& slot, Counts& counts);
  static void fetch_predecessors(Task& task);
  void link_without_data(Task& task, Counts& counts);
  void join_group(History& history, Task& task, OperandSlot& slot, Counts& counts);
  static void remember(History& history, TaskRef reader);
  Edge* spare_edge();
  FreeSlots& slots_at_hand() const noexcept;
  void take_slots(FreeSlots& out, bool beyond);
  void return_edge(Edge* edge) noexcept;
  /// An edge that doesn't lie in its successor comes from the pool (invariant 4 of task.h).
  static bool is_spare(const Edge* edge, const Task& successor) noexcept {
    const auto* slots = reinterpret_cast<const char*>(successor.operands);
    const auto* place = reinterpret_cast<const char*>(edge);
    return place < slots || place >= slots + sizeof(OperandSlot) * successor.operand_count;
  }

  static constexpr std::uint64_t guard = (std::uint64_t{1} << 61) | (std::uint64_t{1} << 29);
  static constexpr std::uint64_t hold_bit = std::uint64_t{1} << 62;
  static constexpr std::size_t chunk = 256;

  SpinLock submission_;
  std::atomic<std::uint64_t> next_id_{1};
  std::size_t window_;
  Reductions* reductions_ = nullptr;
  std::uint64_t id_;                 ///< Tells graphs apart in caches that threads keep.
  std::size_t cached_;               ///< Slots that a submitting thread keeps at hand, at most.
  alignas(64) SpinLock allocation_;  ///< Guards the members below.
  std::vector<Task*> free_;
  std::size_t allocated_ = 0;
  std::vector<std::unique_ptr<Task[]>> chunks_;

  std::atomic<int> open_holds_{0};

  // Guarded by the submission lock.
  std::uint64_t holds_ = 0;
  bool keep_edges_ = false;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> edges_;
  std::vector<std::unique_ptr<Edge[]>> edge_chunks_;
  Edge* spare_ = nullptr;
  std::atomic<Edge*> returned_{nullptr};  ///< Spare edges that were released; pushed by any thread.
};

template <class Ready>
Edge* Graph::issued(Task& task, Ready&& ready) {
  const std::uintptr_t head = task.successors.exchange(Task::issued, std::memory_order_acq_rel);
  Edge* const list = reinterpret_cast<Edge*>(head);
  // Successors lie all over the window: several are fetched before the first is touched.
  constexpr std::size_t most = 16;
  Task* batch[most];
  for (const Edge* edge = list; edge;) {
    std::size_t count = 0;
    for (; edge && count < most; edge = edge->next) {
      if (edge->strict()) continue;
      batch[count++] = &edge->successor();
      __builtin_prefetch(&edge->successor().pending, 1);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t before = batch[i]->pending.fetch_sub(1, std::memory_order_acq_rel);
      if ((before & 0xffffffff) == 1) ready(*batch[i]);
    }
  }
  return list;
}

template <class Ready>
void Graph::ended(Task& task, Edge* earlier, Ready&& ready) {
  const std::uintptr_t head = task.successors.exchange(Task::closed, std::memory_order_acq_rel);
  const bool was_issued = head & Task::issued;
  const auto drop = [&](Edge* edge, std::uint64_t count) {
    while (edge) {
      Edge* const next = edge->next;
      Task& successor = edge->successor();
      const std::uint64_t less = edge->strict() ? Task::one_both : count;
      if (is_spare(edge, successor)) return_edge(edge);
      const std::uint64_t now = successor.pending.fetch_sub(less, std::memory_order_acq_rel) - less;
      if ((now & 0xffffffff) == 0) ready(successor, now);
      edge = next;
    }
  };
  drop(reinterpret_cast<Edge*>(head & ~Task::issued), was_issued ? Task::one_done : Task::one_both);
  drop(earlier, Task::one_done);
}

}  // namespace quadriga
