// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/plan.h: what the driver knows of submitted tasks: their order on each device, next
// uses of tiles.
//
// Pure: no thread, device or clock; used by the driver's thread only.
//
// Kept up by what changes: a decision asks for the next use of a tile or for what changed since it
// was asked last, and walks neither the tasks of the window nor the uses of a tile.
//
// Invariants
//   1. A planned task that has a device is in that device's `planned` until it is issued or ends,
//      and in its `ready` while it could be issued.
//   2. Until its task is issued an access is among the uses of its tile by the task's device, or by
//      tasks without one.
//   3. `users` of a tile has a bit for each device that has such uses.
//   4. A tile is in `changed` of a device, once, if something may have made it missing there, or
//      what is missing another: a first use up to the horizon came, or the first use of a missing
//      tile went; the tile left the memory, a task that writes what is missing was issued, the
//      host's access to it has ended, or its writer that goes on after its body has.
//   5. `horizon.tasks` of the device's tasks have positions up to `horizon.until`.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "device/backend.h"
#include "graph/task.h"
#include "schedule/kernel_history.h"
#include "schedule/sorted_blocks.h"
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

/// The driver's part of a task.
struct PlannedTask {
  Task* task = nullptr;
  Position position = 0;
  DeviceId device = no_device;     ///< Once placed.
  DeviceId activator = no_device;  ///< Where its last predecessor ran.
  Predecessors predecessors = Predecessors::pending;
  Gang* gang = nullptr;  ///< It starts together with others, see gangs.h.
  bool ready = false;    ///< Its predecessors let its device queue it.
  bool ranked = false;   ///< Its position is the one that the policy gave it.
  bool issued = false;
  bool waited = false;          ///< For a device to pull it, see pulls.h; it may have done so.
  bool again = false;           ///< Issued once more, after its device was lost.
  bool left_host = false;       ///< It found no buffer there.
  Edge* released = nullptr;     ///< The engine's: edges that Graph::issued() has walked.
  double seconds = 0;           ///< Predicted kernel time; 0: unknown.
  TaskHistory* like = nullptr;  ///< Tasks of its codelet and order of size.
  bool learns = false;          ///< Its device follows from what these took.
  std::optional<DeviceKind> counted;  ///< Where they count it.
  bool fills = false;                 ///< Its kernel alone uses all of its device.
  double ahead_seconds = 0;  ///< Of issued tasks: with the time of the copies that it waits for.
  Cost cost;
  Event done;                       ///< Of issued tasks: the end of its kernel.
  std::uint64_t number = 0;         ///< Order of issue, from 1.
  std::exception_ptr source_error;  ///< Of an issued task: a copy that it relies on failed.
  bool detached = false;            ///< Its body has ended, its promise isn't kept.
  bool kept = false;                ///< Its promise was kept.
  bool deferred = false;            ///< It said that it can't run yet (DeviceSide::choose).
  bool unpinned = false;            ///< It goes on without its operands.
  std::exception_ptr promised;      ///< Of a promise that was kept: the failure.
  bool poisoned = false;            ///< A task that wrote an operand before it failed.
  bool spared = false;   ///< There was nothing to do: ends well without having been issued.
  bool waits = false;    ///< Of issued tasks: the variant may wait before it has queued.
  Nanoseconds path = 0;  ///< Longest chain of kernel times up to its begin.
  std::vector<PlannedAccess> accesses;
  std::vector<View> views;
  /// Whether it is issued and needs no content of an operand.
  bool overwrites(std::size_t operand) const noexcept {
    return task->operands[operand].access == Access::write || (to_init >> operand & 1);
  }
  std::uint64_t to_init = 0;  ///< A bit an operand: a partial result that it is the first to fill.
  Kernel run;                 ///< What the backend calls.
};

/// Tasks by their position.
using PlanSet = SortedBlocks<Position, PlannedTask*>;

/// What is known of one tile's accesses, in a line of the caches.
struct alignas(64) TileUses {
  std::uint32_t versions_issued = 0;  ///< Writing accesses issued so far.
  std::uint32_t writers = 0;          ///< Writing accesses submitted and not ended.
  std::uint32_t epoch = 0;            ///< Counts the tasks issued that overwrite the tile.
  std::uint64_t last_writer = 0;      ///< Number of the task issued last that writes the tile.
  bool rewritten = false;   ///< By a task that ran again, or home's old content is valid again.
  bool is_partial = false;  ///< `datum` is a partial result.
  /// Its last writer was issued and may go on after its body's end: its event tells nothing.
  bool is_open = false;
  std::uint64_t users = 0;  ///< Devices with placed tasks that use it, a bit each.
  Datum* datum = nullptr;
};

/// The first tasks of a device's plan: so many, up to a position.
struct Horizon {
  Position until = 0;
  std::size_t tasks = 0;
};

struct DevicePlan {
  PlanSet planned;
  PlanSet ready;
  Horizon horizon;              ///< The lookahead's: the tasks that it has in sight.
  std::vector<TileId> changed;  ///< For the lookahead to look at again.
  double queued_seconds = 0;    ///< Predicted, of what is placed here and has not ended.
  int learning = 0;             ///< Planned tasks that learn.
};

class Plan {
 public:
  static constexpr std::size_t most_devices = 64;
  /// Whether a task's uses are planned when it is added, or with those of the device that it gets
  /// at once.
  enum class Uses : bool { planned, later };
  /// Of so many devices, at least one. Errors: invalid_argument if they are too many.
  explicit Plan(std::size_t devices);

  PlannedTask& add(Task& task, Uses uses = Uses::planned);
  /// The uses of a task that was added without them, if it wasn't placed meanwhile.
  void plan_uses(PlannedTask& planned);
  /// The task has ended, or was refused: its uses are forgotten if they weren't yet.
  void end(PlannedTask& planned);
  void place(PlannedTask& planned, DeviceId device);
  void unplace(PlannedTask& planned);
  void make_ready(PlannedTask& planned);
  /// Moves a task that isn't issued to another position, with its uses.
  void reposition(PlannedTask& planned, Position position);
  /// Issued: leaves the plan; its writes count as issued.
  void issue(PlannedTask& planned);

  DevicePlan& on(DeviceId device) { return devices_[device]; }
  const DevicePlan& on(DeviceId device) const { return devices_[device]; }
  TileUses& uses(TileId tile) {
    if (tile >= uses_.size()) grow(tile);
    return uses_[tile];
  }
  /// The same of a tile that may be unknown; null then.
  const TileUses* known_uses(TileId tile) const {
    return tile < uses_.size() ? &uses_[tile] : nullptr;
  }
  /// The first use in the order of a device's plan, of what is placed there; null if there is none.
  const PlannedAccess* first_use(TileId tile, DeviceId device) const {
    return tile < uses_.size() ? here(tile, device).uses.first() : nullptr;
  }
  /// The devices that have placed tasks which use it, a bit each.
  std::uint64_t users(TileId tile) const { return tile < uses_.size() ? uses_[tile].users : 0; }
  /// The same and, if tasks without a device use it, all others.
  std::uint64_t possible_users(TileId tile) const {
    if (tile >= uses_.size()) return 0;
    if (here(tile, no_device).uses.first())
      return ~std::uint64_t{0} >> (most_devices - devices_.size());
    return uses_[tile].users;
  }
  /// It has left the device's memory.
  void departed(TileId tile, DeviceId device) {
    if (users(tile) >> device & 1 && is_in_sight(*first_use(tile, device))) note(tile, device);
  }
  /// Its replicas on devices are old, though no task has written it.
  void overwritten(TileId tile) { note_users(tile); }
  /// What the lookahead found: whether a task in sight uses the tile, and the memory lacks it.
  void set_missing(TileId tile, DeviceId device, bool missing) {
    here(tile, device).missing = missing;
  }
  /// Moves the horizon behind the next tasks until `most` are before it, and calls visit(task) for
  /// each of them.
  template <class Visit>
  void advance(DeviceId device, std::size_t most, Visit&& visit) {
    auto& [until, tasks] = devices_[device].horizon;
    const PlanSet& planned = devices_[device].planned;
    for (auto next = planned.upper_bound(until); next != planned.end() && tasks < most; ++next) {
      until = next.key();
      ++tasks;
      fetch_uses(next, planned.end());
      visit(**next);
    }
  }
  /// Moves the horizon before the last of its tasks, which is returned; there is one.
  const PlannedTask& retreat(DeviceId device);
  /// Calls visit(tile) for each tile of `changed`, once; what changes meanwhile comes later.
  template <class Visit>
  void take_changed(DeviceId device, Visit&& visit) {
    taken_.swap(devices_[device].changed);
    for (const TileId tile : taken_) here(tile, device).changed = false;
    for (const TileId tile : taken_) visit(tile);
    taken_.clear();
  }
  /// Position of the next use of a tile on a device, tasks without a device included; UINT64_MAX if
  /// none.
  std::uint64_t next_use(TileId tile, DeviceId device) const;
  /// The same behind a position of the plan.
  std::uint64_t next_use_after(TileId tile, DeviceId device, Position position) const;
  /// Whether a placed task is to read the tile's present content, which nobody may write before.
  bool reads_present(const PlannedAccess& use) const {
    if (use.access == Access::write || use.behind_host) return false;
    const TileUses& tile = uses_[use.tile];
    if (tile.is_open) return false;
    if (tile.is_partial) return use.datum->filled;
    return tile.versions_issued == use.version;
  }
  /// Whether a tile is used by tasks of one device only, and the first of them reads its present
  /// content and comes at most so many positions behind the device's next task.
  bool wants_before(TileId tile, DeviceId device, double positions) const;
  template <class Visit>
  void for_each_datum(Visit&& visit) {
    for (TileUses& uses : uses_)
      if (uses.datum) visit(*uses.datum);
  }
  /// Brings what the tasks behind `next` are made of, and the first of their successors, into the
  /// caches, before they are issued in turn: those of a window don't fit there.
  static void fetch_tasks(PlanSet::const_iterator next, PlanSet::const_iterator end);
  /// Brings what is known of a tile's uses by a device's tasks, or those without one, into the
  /// caches: that of all tiles of a large matrix doesn't fit there.
  void fetch_tile(TileId tile, DeviceId device) const {
    if (tile >= uses_.size()) return;
    __builtin_prefetch(&uses_[tile], 1);
    __builtin_prefetch(&here(tile, device), 1);
  }
  std::size_t waiting() const noexcept { return waiting_; }
  void validate() const;

 private:
  void forget_uses(PlannedTask& planned);
  void host_has_left(PlannedTask& planned);
  void leave(DevicePlan& device, PlannedTask& planned);
  void bind(PlannedAccess& access, Datum& datum);
  void unbind(PlannedAccess& access);
  void validate_horizon(DeviceId device) const;
  void move_uses(PlannedTask& planned, DeviceId device);
  void grow(TileId tile);
  bool is_in_sight(const PlannedAccess& access) const {
    return access.position <= devices_[access.task->device].horizon.until;
  }
  /// The same of their uses only, before these are looked at.
  static void fetch_uses(PlanSet::const_iterator next, PlanSet::const_iterator end);
  void note(TileId tile, DeviceId device);
  void note_users(TileId tile);
  void validate_uses(TileId tile) const;

  /// The uses of a tile by one device's tasks.
  struct Here {
    UseOrder uses;
    bool changed = false;  ///< It is in the device's list.
    bool missing = false;
  };
  /// Behind those of the devices that of tasks without one.
  std::size_t places() const noexcept { return devices_.size() + 1; }
  Here& here(TileId tile, DeviceId device) {
    return here_[tile * places() + std::min<std::size_t>(device, devices_.size())];
  }
  const Here& here(TileId tile, DeviceId device) const {
    return here_[tile * places() + std::min<std::size_t>(device, devices_.size())];
  }

  std::vector<DevicePlan> devices_;
  std::vector<TileUses> uses_;
  std::vector<Here> here_;  ///< tile-major
  std::vector<TileId> taken_;
  std::deque<PlannedTask> pool_;
  std::vector<PlannedTask*> free_;
  std::size_t waiting_ = 0;  ///< Planned and not issued.
  std::uint64_t issues_ = 0;
};

}  // namespace quadriga
