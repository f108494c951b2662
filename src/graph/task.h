// SPDX-License-Identifier: BSD-3-Clause
// src/graph/task.h: tasks, data and the edges between them, laid out for a few cache lines a task.
//
// Invariants
//   1. A task's slot is reused only after the task ended; who holds (Task*, id) compares ids under
//      the submission lock before using the slot.
//   2. `successors` is a stack of edges; `closed` once the task is done: no edge is added
//      after that.
//   3. `pending` counts in its low half the predecessors that are neither issued nor done, in
//      its high half those that are not done; the submitter holds one of each until all edges
//      are there.
//   4. An edge lives in its successor, or in the graph's pool if one operand has several
//      predecessors; it is not touched once the predecessor has released it.
//   5. Data whose memory overlaps are aliases of each other: an access to one is an access to all,
//      by strict edges, which hold until the predecessor is done: no event of a tile's replica
//      joins the two. What an alias holds on a device is stale once another one is written; the
//      next access to it follows a task on the host that brings the others home (sharing.h).
#pragma once

#include <quadriga/codelet.h>
#include <quadriga/types.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <vector>

#include "graph/gang.h"
#include "graph/group.h"
#include "memory/directory.h"

namespace quadriga {

struct Datum;
struct Reduction;
struct Task;

struct Edge {
  Edge* next = nullptr;
  std::uintptr_t target = 0;  ///< The successor, whose address is even; odd: a strict edge.

  Task& successor() const noexcept { return *reinterpret_cast<Task*>(target & ~std::uintptr_t{1}); }
  bool strict() const noexcept { return target & 1; }
};

/// A task as remembered by data: compare `id` before use.
struct TaskRef {
  Task* task = nullptr;
  std::uint64_t id = 0;
};

/// The last accesses to one datum in one domain of submission. Guarded by the submission lock.
/// What each access looks at comes first.
struct History {
  static constexpr int inline_readers = 6;
  TaskRef writer;
  std::uint8_t count = 0;
  Access group = Access::read;       ///< Mode of the group.
  const Codelet* combine = nullptr;  ///< What a group of mode reduce combines by; null: anything.
  std::unique_ptr<std::vector<TaskRef>> more;
  /// Members of the last group of another mode, which each member of this group must follow.
  std::unique_ptr<std::vector<TaskRef>> before;
  /// Readers, or members of a group of commute or reduce, since the writer.
  TaskRef readers[inline_readers];
  std::shared_ptr<Reduction> reduction;  ///< Its partial results; null until there are any.
};

/// Who wants to hear of a datum's copies.
class CopyWatch {
 public:
  /// A copy of its content has ended, or to no_space: it is lost, no copy will bring it home. By
  /// a thread of the engine's, which others wait for: it neither waits nor submits.
  virtual void copied(Datum& datum, SpaceId to, std::exception_ptr error) noexcept = 0;

 protected:
  ~CopyWatch() = default;
};

/// A registered tile.
struct Datum {
  // What it is; written before it is shared. Tasks on the host need no more than this line.
  std::byte* home = nullptr;
  SpaceId home_space = host_space;  ///< Where `home` is.
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;
  DType dtype = DType::bytes;
  bool keep = false;
  bool is_private = false;  ///< The library's own: neither found by its memory nor an alias.
  const void* engine = nullptr;

  /// The host's buffer of a tile without a home; the executor's to free.
  std::byte* buffer = nullptr;

  CopyWatch* watch = nullptr;         ///< Outlives it; null: nobody.
  std::atomic<bool> poisoned{false};  ///< A failed task should have written it.
  /// While it is poisoned: only by tasks that should have brought aliases home for it; what it
  /// holds itself is as good as before.
  std::atomic<bool> lacking{false};
  std::atomic<std::uint64_t> failed_by{0};  ///< Number of the last such task; 0: there was none.
  /// The last task that failed while it ran, of those that write it, and the epoch of its access
  /// (PlannedAccess); written by the thread that ran it, before its end is known elsewhere.
  std::atomic<std::uint64_t> failed_task{0};
  std::atomic<std::uint32_t> failed_epoch{0};
  std::atomic<std::uint64_t> failed_number{UINT64_MAX};
  bool final = false;    ///< No later task writes it: the driver's to read and write.
  bool partial = false;  ///< A partial result of a reduction.
  bool filled = false;   ///< A partial result that isn't combined yet; the executor's.
  TileId tile = no_tile;
  std::size_t width_bytes() const noexcept {
    return static_cast<std::size_t>(rows) * size_of(dtype);
  }
  std::size_t columns() const noexcept { return static_cast<std::size_t>(cols); }
  std::size_t bytes() const noexcept { return width_bytes() * columns(); }
  bool at_home(SpaceId space) const noexcept { return home && home_space == space; }
  /// It was to be written itself, and not an alias whose content it lacks.
  bool is_lost() const noexcept {
    return poisoned.load(std::memory_order_acquire) && !lacking.load(std::memory_order_relaxed);
  }

  // With the head of the history the line that submission changes: not in the unit of two, which
  // processors fetch together, that running tasks read.
  alignas(128) std::uint32_t versions = 0;  ///< Writing accesses submitted. The submission lock.
  bool written = false;                     ///< There were some. Guarded by the submission lock.
  /// A task was submitted that accesses it since the host could write it: a device may have a
  /// replica, though the history forgets tasks that have ended. Guarded by the submission lock.
  bool touched = false;
  // Of aliases (invariant 5). Guarded by the submission lock.
  std::atomic<bool> aliased{false};  ///< It has aliases, or had some; read without the lock.
  bool stale = false;                ///< An alias was written since its last access.
  bool dirty = false;                ///< Written since it was last brought home for an alias.
  std::atomic<bool> busy{false};     ///< Held by a running task in mode commute.
  /// Replicas on devices outlive wait(). Written by registrations.
  std::atomic<bool> resident{false};
  std::uint32_t versions_at_home = 0;  ///< Of `versions`, what home held; the submission lock.
  History history;

  Datum* next_free = nullptr;
  /// Every set of partial results for this data. Guarded by the submission lock.
  std::vector<std::shared_ptr<Reduction>> reductions;
  std::vector<Datum*> aliases;  ///< Guarded by the submission lock.
  TaskRef brought_home;         ///< The last task that did so for an alias; the same lock.
  Datum* renamed = nullptr;     ///< Whose content is newer, see renaming.h; the same lock.
  std::uint32_t holders = 0;    ///< Registrations not removed. Guarded by the engine.
  std::uint32_t lenders = 0;    ///< Of these, those that asked for residency; as well.
};

struct OperandSlot {
  Datum* datum = nullptr;
  Edge edge;
  std::uint32_t version = 0;  ///< Writing accesses before this one: what a read needs to see.
  Access access = Access::read;
  bool precedes_writes = false;  ///< No access that writes was submitted before.
  bool behind_host = false;      ///< The host had access for writing when the task was submitted.
};

class DeviceSide;
struct PlannedTask;
struct Domain;

/// Its body leaves the end of the task to others.
inline bool is_detached(const Codelet& codelet) noexcept {
  return codelet.detaches || codelet.blocks;
}

/// What few tasks need: kept out of the lines that every task touches.
struct TaskExtra {
  std::unique_ptr<OperandSlot[]> operands;
  std::unique_ptr<std::byte[]> params;
  std::unique_ptr<Domain> domain;  ///< Histories of what the task's children touch.
  /// By operand: whose partial results it adds to; null for the others, and where in place.
  std::unique_ptr<Reduction*[]> reductions;
  std::unique_ptr<std::size_t[]> workspaces;  ///< By device, bytes beside the operands.
  Datum* sequence = nullptr;  ///< Has no content: what it holds is the order of tasks.
  std::unique_ptr<std::vector<TaskRef>> after;  ///< What it follows whatever it touches.
  std::shared_ptr<Gang> gang;                   ///< It starts together with others.
  /// Let go once the task has ended, run or not, by the thread of that end, which others wait for.
  std::shared_ptr<void> held;
  DeviceSide* side = nullptr;  ///< Belongs to `held`; null: it runs as its codelet says.
};

/// Two lines a unit, which processors fetch together: a successor's count and its edges.
struct alignas(128) Task {
  static constexpr std::uintptr_t closed = 1;
  static constexpr std::uintptr_t issued = 2;  ///< Tag bit: later edges count only as not done.
  static constexpr std::uint64_t one_done = std::uint64_t{1} << 32;
  static constexpr std::uint64_t one_both = one_done | 1;
  static constexpr int inline_operands = 4;
  static constexpr std::size_t inline_params = 40;

  // The first line is all that a task without operands and parameters touches.
  std::atomic<std::uintptr_t> successors{closed};
  std::atomic<std::uint64_t> pending{0};
  const Codelet* codelet = nullptr;
  std::atomic<std::uint64_t> id{0};  ///< Order of submission, from 1.
  OperandSlot* operands = nullptr;   ///< inline_slots or extra.operands.
  std::int32_t priority = 0;
  std::atomic<std::int32_t> children{0};  ///< Plus one while the body runs.
  std::uint16_t operand_count = 0;
  bool has_commute = false;
  bool has_params = false;
  std::atomic<bool> has_parent = false;  ///< Atomic, as parent_task: for who holds (Task*, id).
  bool has_extra = false;
  /// It followed an access of the host's, or a task that did.
  std::atomic<bool> behind_hold{false};
  TaskGroup* group = nullptr;  ///< Null once the task has ended.

  OperandSlot inline_slots[inline_operands];

  std::uint32_t params_bytes = 0;  ///< Valid if has_params.
  DeviceId device = no_device;
  DeviceId owner = no_device;
  std::atomic<Task*> parent_task = nullptr;  ///< Valid if has_parent.
  PlannedTask* planned = nullptr;            ///< The driver's part.
  alignas(8) std::byte inline_bytes[inline_params];

  TaskExtra extra;

  Task* parent() const noexcept {
    if (!has_parent.load(std::memory_order_acquire)) return nullptr;
    return parent_task.load(std::memory_order_acquire);
  }
  Reduction* reduction(int operand) const noexcept {
    return has_commute && has_extra && extra.reductions ? extra.reductions[operand] : nullptr;
  }
  /// For who submits it, and for whom that happens before its body runs.
  Gang* gang() const noexcept { return has_extra ? extra.gang.get() : nullptr; }
  /// Bytes that its variant for a device needs beside the operands.
  std::size_t workspace_bytes(DeviceId on) const noexcept {
    return has_extra && extra.workspaces ? extra.workspaces[on] : 0;
  }
  DeviceSide* side() const noexcept { return has_extra ? extra.side : nullptr; }
  Datum* sequence() const noexcept { return has_extra ? extra.sequence : nullptr; }
  bool cancelled() const noexcept {
    return group && group->cancelled.load(std::memory_order_acquire);
  }
  bool done() const noexcept { return successors.load(std::memory_order_acquire) == closed; }
  std::span<const std::byte> params() const noexcept {
    if (!has_params) return {};
    return {params_bytes > inline_params ? extra.params.get() : inline_bytes, params_bytes};
  }
  /// Slots for so many operands; clears what few tasks need. Its slot was just allocated.
  void take_slots(std::size_t count) {
    operand_count = static_cast<std::uint16_t>(count);
    has_extra = count > inline_operands;
    if (has_extra) extra.operands = std::make_unique<OperandSlot[]>(count);
    operands = has_extra ? extra.operands.get() : inline_slots;
  }
  std::span<OperandSlot> slots() noexcept { return {operands, operand_count}; }
};

/// Fetches a task's lines from another core's cache ahead of their use, several at a time.
inline void fetch_ahead(const Task* task) noexcept {
  constexpr std::size_t line = 64;
  const char* const begin = reinterpret_cast<const char*>(task);
  for (std::size_t at = 0; at < offsetof(Task, extra); at += line)
    __builtin_prefetch(begin + at, 1);
}

}  // namespace quadriga
