// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/use_table.h: which planned tasks use a tile, by device and in the order of its plan,
// and for which tiles that has changed. Pure.
//
// Kept up by what changes: a decision asks for the next use of a tile or for what changed since it
// was asked last, and walks neither the tasks of the window nor the uses of a tile.
//
// Invariants
//   1. Until its task is issued an access is among the uses of its tile by the task's device, or by
//      tasks without one.
//   2. `users` of a tile has a bit for each device that has such uses.
//   3. A tile is in `changed` of a device, once, if something may have made it missing there, or
//      what is missing another: a first use up to the horizon came, or the first use of a missing
//      tile went; the tile left the memory, a task that writes what is missing was issued, the
//      host's access to it has ended, or its writer that goes on after its body has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "schedule/device_order.h"
#include "schedule/planned_task.h"

namespace quadriga {

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
static_assert(sizeof(TileUses) == 64);

class UseTable {
 public:
  static constexpr std::size_t most_devices = 64;
  /// Of tasks on these devices, whose plans outlive it.
  explicit UseTable(std::span<const DeviceOrder> devices)
      : devices_(devices), changed_(devices.size()) {}

  // What becomes of a task.
  /// Submitted: its writes count, its uses don't yet.
  void add(PlannedTask& planned);
  /// Its uses come into the table if they aren't there yet: those of its device, or of a task
  /// without one.
  void plan(PlannedTask& planned);
  void place(PlannedTask& planned, DeviceId device);
  void unplace(PlannedTask& planned);
  /// Of a task without a device.
  void reposition(PlannedTask& planned, Position position);
  /// What it follows has ended, accesses of the host's among them.
  void host_has_left(PlannedTask& planned);
  /// Issued, or it won't be: its uses are none any more, its writes count as issued.
  void forget(PlannedTask& planned);
  /// Issued under its number.
  void issue(PlannedTask& planned);
  /// Its writes have ended.
  void end(Task& task);

  // What becomes of a tile.
  /// It has left the device's memory.
  void departed(TileId tile, DeviceId device) {
    if (users(tile) >> device & 1 && is_in_sight(*first_use(tile, device))) note(tile, device);
  }
  /// Its replicas on devices are old: another content, so what is missing may exist now.
  void overwritten(TileId tile);
  /// What the lookahead found: whether a task in sight uses the tile, and the memory lacks it.
  void set_missing(TileId tile, DeviceId device, bool missing) {
    here(tile, device).missing = missing;
  }
  /// Whether take_changed() would visit any.
  bool has_changed(DeviceId device) const noexcept { return !changed_[device].empty(); }
  /// Calls visit(tile) for each tile that changed for a device, once; what changes meanwhile comes
  /// later.
  template <class Visit>
  void take_changed(DeviceId device, Visit&& visit) {
    taken_.swap(changed_[device]);
    for (const TileId tile : taken_) here(tile, device).changed = false;
    for (const TileId tile : taken_) visit(tile);
    taken_.clear();
  }

  /// Calls visit(tile, device) for the tiles whose first use on a device, or by tasks without one,
  /// has gone since this was called last: the next one may be later. Each comes once.
  template <class Visit>
  void take_later(Visit&& visit) {
    for (const auto& [tile, device] : later_) {
      here(tile, device).later = false;
      visit(tile, device);
    }
    later_.clear();
  }

  // Questions.
  TileUses& at(TileId tile) {
    if (tile >= tiles_.size()) grow(tile);
    return tiles_[tile];
  }
  /// The same of a tile that may be unknown; null then.
  const TileUses* known(TileId tile) const {
    return tile < tiles_.size() ? &tiles_[tile] : nullptr;
  }
  /// The first use in the order of a device's plan, of what is placed there; null if there is none.
  const PlannedAccess* first_use(TileId tile, DeviceId device) const {
    return tile < tiles_.size() ? here(tile, device).uses.first() : nullptr;
  }
  /// The devices that have placed tasks which use it, a bit each.
  std::uint64_t users(TileId tile) const { return tile < tiles_.size() ? tiles_[tile].users : 0; }
  /// The same and, if tasks without a device use it, all others.
  std::uint64_t possible_users(TileId tile) const {
    if (tile >= tiles_.size()) return 0;
    if (here(tile, no_device).uses.first())
      return ~std::uint64_t{0} >> (most_devices - devices_.size());
    return tiles_[tile].users;
  }
  /// Position of the next use of a tile on a device, tasks without a device included; UINT64_MAX if
  /// none.
  std::uint64_t next_use(TileId tile, DeviceId device) const;
  /// The same behind a position of the plan.
  std::uint64_t next_use_after(TileId tile, DeviceId device, Position position) const;
  /// The same behind a use by a task of that device which isn't issued.
  std::uint64_t next_use_behind(const PlannedAccess& use, DeviceId device) const;
  /// Whether a placed task is to read the tile's present content, which nobody may write before.
  bool reads_present(const PlannedAccess& use) const {
    if (use.access == Access::write || use.behind_host) return false;
    const TileUses& tile = tiles_[use.tile];
    if (tile.is_open) return false;
    if (tile.is_partial) return use.datum->filled;
    return tile.versions_issued == use.version;
  }
  /// Whether a tile is used by tasks of one device only, and the first of them reads its present
  /// content and comes at most so many positions behind the device's next task.
  bool wants_before(TileId tile, DeviceId device, double positions) const;
  template <class Visit>
  void for_each_datum(Visit&& visit) {
    for (TileUses& tile : tiles_)
      if (tile.datum) visit(*tile.datum);
  }
  /// Brings what is known of a tile's uses by a device's tasks, or those without one, into the
  /// caches: that of all tiles of a large matrix doesn't fit there.
  void fetch(TileId tile, DeviceId device) const {
    if (tile >= tiles_.size()) return;
    __builtin_prefetch(&tiles_[tile], 1);
    __builtin_prefetch(&here(tile, device), 1);
  }
  /// Throws internal if an invariant is broken.
  void validate() const;

 private:
  /// The uses of a tile by one device's tasks.
  struct Here {
    UseOrder uses;
    bool changed = false;  ///< It is in the device's list.
    bool missing = false;
    bool later = false;  ///< It is in `later_`.
  };
  /// Behind those of the devices that of tasks without one.
  std::size_t places() const noexcept { return devices_.size() + 1; }
  Here& here(TileId tile, DeviceId device) {
    return here_[tile * places() + std::min<std::size_t>(device, devices_.size())];
  }
  const Here& here(TileId tile, DeviceId device) const {
    return here_[tile * places() + std::min<std::size_t>(device, devices_.size())];
  }
  bool is_in_sight(const PlannedAccess& access) const {
    return devices_[access.task->device].is_in_sight(access.position);
  }
  void bind(PlannedAccess& access, Datum& datum);
  void unbind(PlannedAccess& access);
  void move(PlannedTask& planned, DeviceId device);
  void note(TileId tile, DeviceId device);
  void grow(TileId tile);
  void validate(TileId tile) const;

  std::span<const DeviceOrder> devices_;
  std::vector<TileUses> tiles_;
  std::vector<Here> here_;                    ///< tile-major
  std::vector<std::vector<TileId>> changed_;  ///< By device: for the lookahead to look at again.
  std::vector<std::pair<TileId, DeviceId>> later_;
  std::vector<TileId> taken_;
};

}  // namespace quadriga
