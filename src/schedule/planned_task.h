// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/planned_task.h: a task as the scheduler knows it: its place in the order, and what
// it uses.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include "device/backend.h"
#include "graph/task.h"
#include "schedule/kernel_history.h"
#include "schedule/sorted_blocks.h"
#include "schedule/task_state.h"
#include "schedule/use_order.h"

namespace quadriga {

/// Position in a device's plan: higher priority first, then order of submission.
using Position = std::uint64_t;

inline Position position_of(const Task& task) noexcept {
  const auto rank =
      static_cast<std::uint32_t>(INT32_MAX - static_cast<std::int64_t>(task.priority));
  return (std::uint64_t{rank} << 32) | (task.id.load(std::memory_order_relaxed) & 0xffffffff);
}

/// That of a rank, before all tasks that have none and no priority: the greatest first, to one part
/// in 2^24.
inline Position position_of(const Task& task, float rank) noexcept {
  constexpr std::uint32_t last = INT32_MAX - 1;
  const auto bits = std::min(std::bit_cast<std::uint32_t>(rank), last);
  return (std::uint64_t{last - bits} << 32) |
         (task.id.load(std::memory_order_relaxed) & 0xffffffff);
}

/// That of the task that was pulled as the so-many-th: before all that have no priority, behind
/// those that were pulled before it and are as urgent.
inline Position position_of(const Task& task, std::uint32_t pulled, bool urgent) noexcept {
  constexpr std::uint32_t half = INT32_MAX / 2;
  return (std::uint64_t{pulled % half + (urgent ? 0 : half)} << 32) |
         (task.id.load(std::memory_order_relaxed) & 0xffffffff);
}

/// What has become of those that a task follows.
enum class Predecessors : std::uint8_t {
  pending,  ///< One is neither issued nor done.
  issued,   ///< All are issued on devices whose events can be waited for, or done.
  done,
};

struct PlannedAccess {
  PlannedTask* task = nullptr;
  Position position = 0;  ///< The task's.
  /// What it works on: the operand's data or a partial result of it, which is known once the task
  /// has a device; null until then.
  Datum* datum = nullptr;
  TileId tile = no_tile;  ///< Of `datum`.
  /// The operand's, so that foresight, which looks at first uses all over the window, needs only
  /// this of a task.
  std::uint32_t version = 0;
  UseLinks links;
  std::uint32_t epoch = 0;            ///< Of the tile, once its task is issued.
  std::uint32_t versions_before = 0;  ///< Writing accesses issued before it.
  bool home_before = false;           ///< Home held what it began with.
  bool behind_host = false;           ///< The host may write the content until the task is ready.
  Access access = Access::read;       ///< The operand's.
  std::uint16_t operand = 0;          ///< Its place among the task's.
  Event source;  ///< What the task waited for: the last writer of its replica, or a copy.
};

/// The scheduler's part of a task.
struct PlannedTask {
  static constexpr std::uint32_t not_begun = UINT32_MAX;
  Task* task = nullptr;
  Position position = 0;
  DeviceId device = no_device;     ///< Once placed.
  DeviceId activator = no_device;  ///< Where its last predecessor ran.
  Predecessors predecessors = Predecessors::pending;
  Gang* gang = nullptr;         ///< It starts together with others, see gangs.h.
  bool ranked = false;          ///< Its position is the one that the policy gave it.
  bool waited = false;          ///< For a device to pull it, see pulls.h; it may have done so.
  bool again = false;           ///< Issued once more, after its device was lost.
  bool left_host = false;       ///< It found no buffer there.
  Edge* released = nullptr;     ///< The engine's: edges that Graph::issued() has walked.
  double seconds = 0;           ///< Predicted kernel time; 0: unknown.
  TaskHistory* like = nullptr;  ///< Tasks of its codelet and order of size.
  bool learns = false;          ///< Its device follows from what these took.
  std::optional<DeviceKind> counted;  ///< Where they count it.
  bool fills = false;                 ///< Its kernel alone uses all of its device.
  bool foretold = false;  ///< `seconds` is of a table, not what others of its kind took.
  /// How often tiles may still leave the host's buffers for it; fixed when they first do.
  std::uint32_t hand_overs_left = not_begun;
  double ahead_seconds = 0;  ///< Of issued tasks: with the time of the copies that it waits for.
  Cost cost;
  Event done;                       ///< Of issued tasks: the end of its kernel.
  std::uint64_t number = 0;         ///< Order of issue, from 1.
  std::exception_ptr source_error;  ///< Of an issued task: a copy that it relies on failed.
  bool kept = false;                ///< Its promise was kept.
  std::exception_ptr promised;      ///< Of a promise that was kept: the failure.
  bool poisoned = false;            ///< A task that wrote an operand before it failed.
  bool waits = false;               ///< Of issued tasks: the variant may wait before it has queued.
  Nanoseconds path = 0;             ///< Longest chain of kernel times up to its begin.
  /// A tile without content: memory beside the operands, where its device needs some.
  TileId workspace = no_tile;
  std::vector<PlannedAccess> accesses;
  std::vector<View> views;
  TaskState state() const noexcept { return state_; }
  bool is_among(TaskStates set) const noexcept { return quadriga::is_among(state_, set); }
  /// The only way to another state. Errors: internal if that can't follow the present one.
  void enter(TaskState next) {
    if (!may_follow(state_, next)) [[unlikely]]
      refuse(next);
    state_ = next;
  }
  /// Whether it is issued and needs no content of an operand.
  bool overwrites(std::size_t operand) const noexcept {
    return task->operands[operand].access == Access::write || (to_init >> operand & 1);
  }
  std::uint64_t to_init = 0;  ///< A bit an operand: a partial result that it is the first to fill.
  Kernel run;                 ///< What the backend calls.

 private:
  [[noreturn]] void refuse(TaskState next) const;

  TaskState state_ = TaskState::submitted;
};

/// Whether it may run elsewhere than on the device where it was placed.
inline bool may_move(const Task& task) noexcept { return task.device == no_device && !task.side(); }

/// Tasks by their position.
using PlanSet = SortedBlocks<Position, PlannedTask*>;

}  // namespace quadriga
